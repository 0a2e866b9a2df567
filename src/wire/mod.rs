//! Wire formats: a request to bytes, bytes to a reply.
