"""The exception tree.

    AGUIPipelineError
    ├── ConfigurationError (also ValueError)   an option, a source or an extra is not what it must be
    ├── DecodeError        (also ValueError)   bytes or values that are no event, input or message
    ├── SequenceError                          events in an order that their protocol forbids
    ├── LimitError                             more than a named limit allows
    └── SourceError                            a source gave something that is no event, or an HTTP failure

Exceptions of sources and stages are not in this tree: they leave a pipeline as themselves.
"""

from __future__ import annotations


class AGUIPipelineError(Exception):
    """The base of every exception that this library raises on its own account."""


class ConfigurationError(AGUIPipelineError, ValueError):
    """An option has a value it cannot have. Raised at construction; names the option, the value and the choices."""


class DecodeError(AGUIPipelineError, ValueError):
    """Data is not what it claims to be. The message says what was got, what was wanted and where."""


class SequenceError(AGUIPipelineError):
    """An event came where its protocol forbids it, and the stage was asked to be strict about that."""


class LimitError(AGUIPipelineError):
    """A named limit was passed and nothing milder than stopping was possible."""


class SourceError(AGUIPipelineError):
    """A source yielded an item that is no event, or a remote source answered with an HTTP error.

    Args:
        message: What happened.
        status: The HTTP status where the source is remote, else None.
        body: The start of the HTTP body where there was one, else None.
    """

    def __init__(self, message: str, *, status: int | None = None, body: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
