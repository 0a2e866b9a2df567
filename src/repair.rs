//! Making a history valid for the API.
