"""The codes of findings and errors, and their summaries."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["DECLARED", "Code"]


class Code(StrEnum):
    """A stable code of a finding or error, such as ``IR301``.

    The first digit stands for the subject: 0 the file, 1 the graph, 2 operations, 3 shapes, 4 execution, 5 limits,
    6 releases.
    """

    summary: str

    def __new__(cls, code: str, summary: str) -> Code:
        self = str.__new__(cls, code)
        self._value_, self.summary = code, summary
        return self

    @classmethod
    def of(cls, code: str) -> Code:
        """Return the member for a code such as ``IR301``.

        Raises:
            ValueError: if there is no such code.
        """
        member = next((member for member in cls if member.value == code), None)
        if member is None:
            raise ValueError(f"unknown code {code!r}")
        return member

    ANY = "IR000", "something failed"

    UNREADABLE = "IR001", "the file cannot be read, or is not an OpenVINO IR"
    BAD_XML = "IR002", "the file is not well-formed XML"
    IR_VERSION = "IR003", "this version of the IR format is not supported"
    WEIGHTS_MISSING = "IR004", "the model has constants, but no .bin was found"
    WEIGHTS_RANGE = "IR005", "a constant is outside the .bin, or its size contradicts its shape"
    FORBIDDEN_XML = "IR006", "the XML has a document type, entities or other things an IR never needs"
    BAD_ELEMENT = "IR007", "an XML element lacks an attribute, or has one that cannot be read"
    SHARED_BYTES = "IR008", "constants share some of their bytes, but not all"
    ORPHAN_BYTES = "IR009", "bytes of the .bin belong to no constant"
    UPGRADED = "IR010", "the file is of an IR version before operation sets, and was upgraded"

    INVALID = "IR100", "the model is not valid"
    DUPLICATE_ID = "IR101", "two layers, or two ports of a layer, have the same id"
    DANGLING_EDGE = "IR102", "an edge starts or ends at a layer or port that does not exist"
    CYCLE = "IR103", "the graph has a cycle"
    UNCONNECTED = "IR104", "an input port has no edge"
    CONNECTED_TWICE = "IR105", "an input port has more than one edge"
    GUESSED_VERSION = "IR106", "a fragment does not say which version of the operation it means"
    PORT_VALUE = "IR107", "a comment gives a port a value that contradicts its dims"
    DUPLICATE_NAME = "IR108", "two layers, or two tensors, have the same name"
    UNREAD = "IR109", "nothing reads what a layer gives"
    DEAD_BRANCH = "IR110", "a branch never runs"
    VARIABLE = "IR111", "a variable is read and never assigned, or the other way round"

    UNKNOWN_OPERATION = "IR201", "the operation is unknown, or not in this opset"
    BAD_ATTRIBUTE = "IR202", "an attribute is missing, or its value is not allowed"
    UNKNOWN_ATTRIBUTE = "IR203", "the operation has no such attribute"
    PORT_COUNT = "IR204", "the layer has too few or too many inputs or outputs"

    CONTRADICTION = "IR301", "the inputs of a layer contradict its operation"
    DECLARED_TYPE = "IR302", "an output declares another element type than its operation gives"
    DECLARED_SHAPE = "IR303", "an output declares other dims than its operation gives"
    ELEMENT_TYPE = "IR304", "an input has an element type that the specification does not allow"
    INPUT_PORT = "IR305", "an input port declares another type or other dims than arrive"
    SUSPICIOUS_VALUES = "IR306", "a constant holds suspicious values"
    UNSATISFIABLE = "IR307", "whatever lengths its inputs have, some layer refuses them"
    LENGTH = "IR308", "a dimension is longer than an int64 holds"

    BAD_INPUT = "IR401", "the inputs do not fit the model"
    LAYER_FAILED = "IR402", "a layer failed on the data it was given"
    NO_SUCH_NAME = "IR403", "unknown name of a layer, tensor, input or output"
    BAD_REQUEST = "IR404", "an option, device or backend is unknown, or a call is not allowed"

    LIMIT = "IR501", "the file asks for more than the limits allow"

    RELEASE_VERSION = "IR601", "the release of OpenVINO does not read this IR version"
    RELEASE_OPERATION = "IR602", "the release of OpenVINO does not have the operation, or the operation set"
    RELEASE_ATTRIBUTE = "IR603", "the release of OpenVINO does not know the attribute, or this value of it"
    RELEASE_TYPE = "IR604", "the release of OpenVINO does not have the element type, or not for this input"
    RELEASE_SHAPE = "IR605", "the release of OpenVINO does not read such dims"


DECLARED = frozenset({Code.DECLARED_TYPE, Code.DECLARED_SHAPE, Code.INPUT_PORT})
"""Codes of findings about declared types of ports that contradict inference, on which results do not depend."""
