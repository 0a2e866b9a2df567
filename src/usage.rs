//! Token figures: of one request, of a turn, and the line that tells them (SPEC C14).

use std::fmt::Write as _;

/// How many bytes of JSON an estimate counts as one token where the server reports nothing.
pub const BYTES_PER_TOKEN: usize = 4;

/// The figures of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub prompt: u64,
    /// Tokens of the answer, reasoning included.
    pub completion: u64,
    /// How many of the request's tokens came from the provider's cache, where it says so.
    pub cached: Option<u64>,
    /// Whether the figures are ours, for want of the server's.
    pub estimated: bool,
}

impl Usage {
    /// Figures for a server that reports none, from the sizes in bytes of request and answer.
    pub fn estimate(request_bytes: usize, answer_bytes: usize) -> Self {
        let tokens = |bytes: usize| bytes.div_ceil(BYTES_PER_TOKEN) as u64;
        Self {
            prompt: tokens(request_bytes),
            completion: tokens(answer_bytes),
            cached: None,
            estimated: true,
        }
    }
}

/// The figures of a turn: what its requests add up to, and how full the context is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnUsage {
    /// The sum over the turn's requests.
    pub total: Usage,
    /// The last request's prompt tokens: what the conversation occupies of the context window.
    pub context: u64,
    /// Whether that figure is ours.
    pub context_estimated: bool,
}

impl TurnUsage {
    /// Adds one request's figures.
    pub fn add(&mut self, usage: Usage) {
        // The figures are the server's, and may be anything.
        self.total.prompt = self.total.prompt.saturating_add(usage.prompt);
        self.total.completion = self.total.completion.saturating_add(usage.completion);
        self.total.cached = match (self.total.cached, usage.cached) {
            (None, None) => None,
            (sum, more) => Some(sum.unwrap_or(0).saturating_add(more.unwrap_or(0))),
        };
        self.total.estimated |= usage.estimated;
        self.context = usage.prompt;
        self.context_estimated = usage.estimated;
    }

    /// How full a context window of `window` tokens is, in percent.
    #[allow(clippy::cast_precision_loss)] // token counts are far below 2^52
    pub fn percent(&self, window: u64) -> f64 {
        if window == 0 {
            0.0
        } else {
            self.context as f64 * 100.0 / window as f64
        }
    }

    /// The usage line, for example
    /// `[m: 1420 prompt (1000 cached, 420 uncached) + 85 completion | context: 1420/200000 (0.7%)]`.
    pub fn line(&self, model: &str, window: u64) -> String {
        let mark = |estimated| if estimated { "~" } else { "" };
        let (total, last) = (mark(self.total.estimated), mark(self.context_estimated));
        let Usage {
            prompt,
            completion,
            cached,
            ..
        } = self.total;
        let mut line = format!("[{model}: {total}{prompt} prompt");
        if let Some(cached) = cached {
            let _ = write!(
                line,
                " ({cached} cached, {} uncached)",
                prompt.saturating_sub(cached)
            );
        }
        let _ = write!(
            line,
            " + {total}{completion} completion | context: {last}{}/{window} ({:.1}%)]",
            self.context,
            self.percent(window)
        );
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c14_the_line_shows_cached_and_uncached_tokens() {
        let mut turn = TurnUsage::default();
        turn.add(Usage {
            prompt: 1420,
            completion: 85,
            cached: Some(1000),
            estimated: false,
        });
        assert_eq!(
            turn.line("openrouter/free", 200_000),
            "[openrouter/free: 1420 prompt (1000 cached, 420 uncached) + 85 completion | context: 1420/200000 (0.7%)]"
        );
    }

    #[test]
    fn c14_requests_add_up_and_the_context_is_the_last_ones() {
        let mut turn = TurnUsage::default();
        turn.add(Usage {
            prompt: 100,
            completion: 10,
            cached: None,
            estimated: false,
        });
        turn.add(Usage {
            prompt: 150,
            completion: 20,
            cached: None,
            estimated: false,
        });
        assert_eq!(
            turn.line("m", 1000),
            "[m: 250 prompt + 30 completion | context: 150/1000 (15.0%)]"
        );
    }

    #[test]
    fn c14_estimates_are_marked() {
        let mut turn = TurnUsage::default();
        turn.add(Usage::estimate(401, 8));
        assert_eq!(
            turn.line("m", 1000),
            "[m: ~101 prompt + ~2 completion | context: ~101/1000 (10.1%)]"
        );
        turn.add(Usage {
            prompt: 150,
            completion: 20,
            ..Usage::default()
        });
        assert_eq!(
            turn.line("m", 1000),
            "[m: ~251 prompt + ~22 completion | context: 150/1000 (15.0%)]",
            "the last request's figure is the server's"
        );
    }
}
