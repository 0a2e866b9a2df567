//! What an error means for us, from its status, its codes and its words (SPEC C3).

use std::time::Duration;

use super::errors::Said;
use super::overflow::{is_overflow, is_rate_limit};
use crate::error::{ApiErrorKind, EMPTY_MESSAGE_REFUSED};

/// What an error means. `http` is the answer's own status, `wait` what it asks us to wait.
pub(super) fn classify(said: &Said, http: Option<u16>, wait: Option<Duration>) -> ApiErrorKind {
    let status = http.or(said.status);
    let rate = is_rate_limit(&said.text);
    if !matches!(status, Some(401..=403 | 429)) && is_overflow(&said.codes, &said.text) {
        return ApiErrorKind::ContextLength;
    }
    let may_be_quota = matches!(status, None | Some(400 | 402 | 403 | 429));
    if may_be_quota && said.is_quota(wait, status != Some(400)) {
        return ApiErrorKind::Quota;
    }
    if said.is_failed_call() {
        return ApiErrorKind::Server;
    }
    if said.says(&[EMPTY_MESSAGE_REFUSED]) {
        return ApiErrorKind::BadRequest;
    }
    match status {
        Some(401 | 403) => ApiErrorKind::Auth,
        Some(402) => ApiErrorKind::Quota,
        Some(404) => ApiErrorKind::NotFound,
        Some(413) if rate => ApiErrorKind::RateLimit,
        Some(413) => ApiErrorKind::ContextLength,
        Some(429) => ApiErrorKind::RateLimit,
        Some(500) if said.is_validation() => ApiErrorKind::BadRequest,
        Some(408 | 425 | 498 | 500..) => ApiErrorKind::Server,
        Some(_) => ApiErrorKind::BadRequest,
        None => classify_by_code(said, rate),
    }
}

/// What an error without a status means: it stands in an answer that began well.
fn classify_by_code(said: &Said, rate: bool) -> ApiErrorKind {
    let is_number = |numbers: &[&str]| {
        said.codes
            .iter()
            .any(|code| numbers.contains(&code.as_str()))
    };
    if said.has_code(&["authentication", "api_key", "permission", "unauthorized"])
        || is_number(&["1004"])
    {
        ApiErrorKind::Auth
    } else if said.has_code(&["not_found", "notfound"]) {
        ApiErrorKind::NotFound
    } else if rate
        || said.has_code(&["rate_limit", "throttling", "too_many", "resource_exhausted"])
        || is_number(&["1302", "1305", "1002", "1039"])
    {
        ApiErrorKind::RateLimit
    } else if said.has_code(&["invalid", "bad_request", "badrequest", "unsupported"])
        || is_number(&["2013"])
        || said.is_validation()
    {
        ApiErrorKind::BadRequest
    } else {
        ApiErrorKind::Server
    }
}

impl Said {
    fn says(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.contains(word))
    }

    fn has_code(&self, words: &[&str]) -> bool {
        self.codes.iter().any(|code| {
            let code = code.to_ascii_lowercase();
            words.iter().any(|word| code.contains(word))
        })
    }

    /// Whether money or a quota is used up, so that waiting does not help.
    fn is_quota(&self, wait: Option<Duration>, by_text: bool) -> bool {
        const CODES: &[&str] = &[
            "insufficient_quota",
            "insufficient_balance",
            "insufficient_credit",
            "insufficient_user_quota",
            "exceeded_current_quota",
            "usage_not_included",
            "payment_required",
            "billing",
            "arrearage",
        ];
        const NUMBERS: &[&str] = &["1113", "1008"];
        const GOODS: &[&str] = &[
            "quota",
            "credit",
            "balance",
            "billing",
            "prepaid",
            "spending limit",
        ];
        const GONE: &[&str] = &[
            "exceed",
            "exhaust",
            "used up",
            "insufficient",
            "not enough",
            "ran out",
            "run out",
            "out of ",
            "too low",
            "deplet",
            "no remaining",
            "reached",
        ];
        self.has_code(CODES)
            || self
                .codes
                .iter()
                .any(|code| NUMBERS.contains(&code.as_str()))
            || self.says(&["insufficient balance", "insufficient_quota", "perday"])
            || (by_text
                && wait.is_none()
                && !self.has_code(&["rate_limit"])
                && self.says(GOODS)
                && self.says(GONE)
                && !self.says(&["minute", "second"]))
    }

    /// Whether the request itself is at fault, whatever the status says.
    fn is_validation(&self) -> bool {
        self.says(&[
            "jinja",
            "chat template",
            "chat_template",
            "template error",
            "roles must alternate",
            "raise_exception",
            "validation error",
            "validationerror",
            "validation_error",
            "extra_forbidden",
            "field required",
            "input should be",
            "'loc':",
            "\"loc\":",
            "invalid_request_error",
            "tool call arguments",
            "failed to parse messages",
            "at row ",
        ])
    }

    /// Whether the model wrote a call that the server could not read; it may do better next time.
    fn is_failed_call(&self) -> bool {
        self.has_code(&["tool_use_failed"]) || self.says(&["tool_use_failed", "failed_generation"])
    }
}

#[cfg(test)]
mod tests {
    use ApiErrorKind::{Auth, BadRequest, ContextLength, NotFound, Quota, RateLimit, Server};

    use super::*;
    use crate::wire::Refusal;

    /// The table of the notes (5.2), and SPEC C3.
    const VERDICTS: &[(u16, &str, ApiErrorKind)] = &[
        (401, "", Auth),
        (403, r#"{"error":"forbidden"}"#, Auth),
        (404, r#"{"error":{"message":"model not found"}}"#, NotFound),
        (400, r#"{"error":{"message":"bad"}}"#, BadRequest),
        (409, "", BadRequest),
        (422, "", BadRequest),
        (405, "", BadRequest),
        (408, "", Server),
        (425, "", Server),
        (498, "", Server),
        (500, "", Server),
        (502, "<html></html>", Server),
        (503, r#"{"error":{"message":"Loading model"}}"#, Server),
        (504, "", Server),
        (520, "", Server),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#,
            Server,
        ),
        (429, "", RateLimit),
        (
            429,
            r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached. Please try again in 1.2s. Visit the billing page"}}"#,
            RateLimit,
        ),
        (
            429,
            r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details."}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"message":"Your credit balance is used up."}}"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"type":"billing_error","message":"m"}}"#,
            Quota,
        ),
        (
            402,
            r#"{"error":{"message":"Insufficient Balance"}}"#,
            Quota,
        ),
        (402, "", Quota),
        (429, r#"{"error":{"code":"1113","message":"m"}}"#, Quota),
        (429, r#"{"error":{"code":"1302","message":"m"}}"#, RateLimit),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 38.6s.","status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"38.6s"}]}}]"#,
            RateLimit,
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 38.6s.","details":[{"violations":[{"quotaId":"RequestsPerDayPerProject"}]},{"retryDelay":"38.6s"}]}}]"#,
            Quota,
        ),
        (
            429,
            r#"{"error":{"message":"Quota exceeded for requests per minute"}}"#,
            RateLimit,
        ),
        (
            413,
            r#"{"error":{"code":"rate_limit_exceeded","message":"Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000"}}"#,
            RateLimit,
        ),
        (413, "", ContextLength),
        (
            400,
            r#"{"error":{"code":"tool_use_failed","message":"m","failed_generation":"<f>"}}"#,
            Server,
        ),
        (
            429,
            r#"{"error":{"type":"engine_overloaded_error","message":"m"}}"#,
            RateLimit,
        ),
        (
            429,
            r#"{"error":{"type":"exceeded_current_quota_error","message":"m"}}"#,
            Quota,
        ),
        (400, r#"{"code":"Arrearage","message":"m"}"#, Quota),
        (
            429,
            r#"{"code":"Throttling.RateQuota","message":"m"}"#,
            RateLimit,
        ),
        (
            429,
            r#"{"message":"Too many tokens, please wait before trying again."}"#,
            RateLimit,
        ),
        (
            400,
            r#"{"error":{"code":"context_length_exceeded","message":"m"}}"#,
            ContextLength,
        ),
        (
            500,
            r#"{"error":{"message":"the request exceeds the available context size"}}"#,
            ContextLength,
        ),
        (
            429,
            r#"{"error":{"message":"Rate limit: prompt is too long"}}"#,
            RateLimit,
        ),
        (
            500,
            r#"{"error":{"message":"Jinja Exception: roles must alternate"}}"#,
            BadRequest,
        ),
        (
            500,
            r#"{"error":{"message":"[{'type': 'string_type', 'loc': ('body', 'messages', 2), 'msg': 'Input should be a valid string'}]"}}"#,
            BadRequest,
        ),
        (
            500,
            r#"{"error":{"message":"1 validation error for Request"}}"#,
            BadRequest,
        ),
        (
            503,
            r#"{"error":{"message":"Invalid message: content or tool_calls must be set"}}"#,
            BadRequest,
        ),
        (302, "", BadRequest),
    ];

    #[test]
    fn c3_errors_are_told_apart_by_status_code_and_words() {
        for (status, body, kind) in VERDICTS {
            assert_eq!(
                Refusal::from_answer(*status, None, body).error.kind,
                *kind,
                "{status} {body}"
            );
        }
    }

    #[test]
    fn c3_errors_inside_a_good_answer_are_told_apart_too() {
        for (body, kind) in [
            (r#"{"error":{"code":429,"message":"m"}}"#, RateLimit),
            (r#"{"error":{"code":502,"message":"m"}}"#, Server),
            (r#"{"error":{"code":400,"message":"m"}}"#, BadRequest),
            (r#"{"error":{"code":401,"message":"m"}}"#, Auth),
            (r#"{"error":{"code":"server_error","message":"m"}}"#, Server),
            (r#"{"error":"overloaded"}"#, Server),
            (
                r#"{"error":"content or tool_calls must be set"}"#,
                BadRequest,
            ),
            (r#"{"error":{"message":"the model crashed"}}"#, Server),
            (
                r#"{"error":{"type":"invalid_request_error","message":"m"}}"#,
                BadRequest,
            ),
            (
                r#"{"error":{"type":"authentication_error","message":"m"}}"#,
                Auth,
            ),
            (
                r#"{"error":{"type":"not_found_error","message":"m"}}"#,
                NotFound,
            ),
            (
                r#"{"error":{"type":"rate_limit_error","message":"m"}}"#,
                RateLimit,
            ),
            (
                r#"{"error":{"code":"insufficient_quota","message":"m"}}"#,
                Quota,
            ),
            (
                r#"{"error":{"message":"greater than the context length"}}"#,
                ContextLength,
            ),
            (
                r#"{"base_resp":{"status_code":1008,"status_msg":"m"},"choices":null}"#,
                Quota,
            ),
            (
                r#"{"base_resp":{"status_code":1002,"status_msg":"m"}}"#,
                RateLimit,
            ),
            (
                r#"{"base_resp":{"status_code":2013,"status_msg":"m"}}"#,
                BadRequest,
            ),
            (
                r#"{"success":false,"error":{"code":"c","status":429}}"#,
                RateLimit,
            ),
        ] {
            assert_eq!(Refusal::from_body(body).error.kind, kind, "{body}");
        }
    }
}
