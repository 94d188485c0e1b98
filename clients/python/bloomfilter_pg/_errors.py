"""What can be wrong."""


class FormatError(ValueError):
    """Bytes that are not a filter, or not one of a version known here."""


class KindError(TypeError):
    """A value of another kind than the filter's elements, or a filter whose
    elements only the server can hash."""
