//! The body of a request, in pieces. It shares the bytes of the prefix: a long conversation is not copied for each request.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// What a request sends after its headers. A clone shares the bytes.
///
/// Made by [`body`](crate::body).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Body {
    /// None of them is empty.
    pieces: VecDeque<Bytes>,
}

impl Body {
    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// A copy of its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self { pieces: Some(Bytes::from(bytes)).filter(|bytes| !bytes.is_empty()).into_iter().collect() }
    }
}

impl From<Body> for reqwest::Body {
    fn from(body: Body) -> Self {
        reqwest::Body::wrap(body)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The exact length, so that the request says how long its body is.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}

/// A body under construction: own bytes, and ranges of the prefix with marks between them.
pub(super) struct Splice {
    pieces: VecDeque<Bytes>,
    /// Own bytes after the last piece.
    own: Vec<u8>,
    prefix: Bytes,
    /// Offsets in `prefix`, ascending.
    marks: Vec<usize>,
    mark: &'static str,
}

impl Splice {
    /// `head` is a JSON object.
    pub(super) fn begin(mut head: Vec<u8>, prefix: Bytes, marks: Vec<usize>, mark: &'static str) -> Self {
        head.pop();
        Self { pieces: VecDeque::new(), own: head, prefix, marks, mark }
    }

    /// A member of the object: its value is a range of the prefix.
    pub(super) fn key(&mut self, key: &str, range: Range<usize>) {
        self.own.extend_from_slice(b",\"");
        self.own.extend_from_slice(key.as_bytes());
        self.own.extend_from_slice(b"\":");
        let mut at = range.start;
        let marks: Vec<usize> = self.marks.iter().copied().filter(|mark| range.contains(mark)).collect();
        for mark in marks {
            self.share(at..mark);
            self.own.extend_from_slice(self.mark.as_bytes());
            at = mark;
        }
        self.share(at..range.end);
    }

    fn share(&mut self, range: Range<usize>) {
        self.pieces.push_back(std::mem::take(&mut self.own).into());
        self.pieces.push_back(self.prefix.slice(range));
    }

    pub(super) fn end(mut self, closing: &str) -> Body {
        self.own.extend_from_slice(closing.as_bytes());
        self.own.push(b'}');
        self.pieces.push_back(self.own.into());
        self.pieces.retain(|piece| !piece.is_empty());
        Body { pieces: self.pieces }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http_body::Body as _;

    use super::*;

    #[test]
    fn a_body_shares_the_prefix_and_knows_its_length() {
        let prefix = Bytes::from_static(br#"[1]["a","b"]"#);
        let mut splice = Splice::begin(b"{\"m\":1}".to_vec(), prefix.clone(), vec![7, 11], "!");
        splice.key("tools", 0..3);
        splice.key("messages", 3..12);
        let body = splice.end("]");
        assert_eq!(body.to_vec(), br#"{"m":1,"tools":[1],"messages":["a"!,"b"!]]}"#);
        let own = |piece: &&Bytes| prefix.as_ptr_range().contains(&piece.as_ptr());
        assert_eq!(body.pieces.iter().filter(own).map(Bytes::len).sum::<usize>(), prefix.len());
        assert_eq!(body.size_hint().exact(), Some(body.len() as u64));
        assert!(!body.is_end_stream() && Body::from(Vec::new()).is_end_stream());
    }
}
