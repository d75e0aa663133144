"""Types as componentize-py generates them, for tests without it."""

from dataclasses import dataclass
from enum import Enum
from typing import List, Optional, Tuple, Union


class Effect(Enum):
    READS = 0
    WRITES = 1


@dataclass
class Link:
    uri: str
    title: Optional[str]


@dataclass
class Content_Text:
    value: str


@dataclass
class Content_Link:
    value: Link


@dataclass
class Content_None:
    pass


Content = Union[Content_Text, Content_Link, Content_None]


@dataclass
class Output:
    content: List[Content]
    structured: Optional[str]
    effect: Effect
    size: int
    share: float
    data: bytes
    extra: List[Tuple[str, str]]


@dataclass
class Error:
    code: str
    message: str
