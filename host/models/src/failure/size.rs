//! Decides whether a refusal is about the size of the request when no list of phrases contains its words.
//!
//! Servers use many words, but they name a thing that can be too long, and say that it is. A number beside it settles less clear
//! words. A refusal that names a parameter, a part of a tool or the rate of requests is about something else.

use super::limit;
use super::stems::{APART, BEYOND, BOUND, BYTES, CAPS, COUNTED, LARGE, LEAST, NEVER, OTHER, READ, SENT};
/// How many characters behind a bound its number may be.
const NEAR: usize = 40;

fn says(text: &str, stems: &[&str]) -> bool {
    stems.iter().any(|stem| text.contains(stem))
}

/// Whether a message in lower case says that the request is too long.
pub(super) fn speaks(text: &str) -> bool {
    if is_about_other(text) {
        return false;
    }
    let numbers = limit::numbers(text);
    let is_large = numbers.iter().any(|number| limit::is_plausible(*number));
    // Only fields are as short as that.
    let is_small = !numbers.is_empty() && (says(text, BOUND) || is_beyond_a_small_number(text));
    if !is_large && (is_small || is_of_hours(text)) {
        return false;
    }
    let (counted, sent) = (says(text, COUNTED), says(text, SENT));
    let (large, beyond) = (says(text, LARGE), says(text, BEYOND));
    match (counted, sent) {
        (true, _) => large || beyond || (is_large && says(text, BOUND)),
        (false, true) => large || (is_large && beyond),
        (false, false) => false,
    }
}

/// Whether the first number behind words of a bound is small, and counts no bytes.
fn is_beyond_a_small_number(text: &str) -> bool {
    let behind = BEYOND.iter().filter_map(|word| text.split_once(word)).find_map(|(_, behind)| {
        let near: String = behind.chars().take(NEAR).collect();
        limit::numbers(&near).first().copied()
    });
    behind.is_some_and(|number| !limit::is_plausible(number)) && !says(text, BYTES)
}

/// Whether a number has a unit of time behind it, as `24h` has.
fn is_of_hours(text: &str) -> bool {
    let words = text.split(|each: char| !each.is_ascii_alphanumeric());
    words.into_iter().any(|word| {
        let unit = word.trim_start_matches(|each: char| each.is_ascii_digit());
        unit.len() < word.len() && ["h", "s", "ms", "min", "d"].contains(&unit)
    })
}

/// Whether a message in lower case is about time, memory, a policy or the like.
pub(super) fn is_apart(text: &str) -> bool {
    says(text, APART)
}

/// Whether a message in lower case has a number of tokens.
pub(super) fn counts_tokens(text: &str) -> bool {
    says(text, &["token", "令牌", "токен", "トークン", "토큰", "jeton"])
        && limit::numbers(text).into_iter().any(limit::is_plausible)
}

/// Whether a message in lower case names what is counted in tokens.
pub(super) fn names_counted(text: &str) -> bool {
    says(text, COUNTED)
}

/// Whether a message in lower case names something else than the size of what the model reads.
pub(super) fn is_about_other(text: &str) -> bool {
    says(text, OTHER) || is_apart(text) || is_about_cap(text)
}

/// A message in lower case without the least that it demands, such as `must be greater than 1024`.
pub(super) fn without_least(text: &str) -> String {
    let mut text = text.to_owned();
    for words in LEAST {
        let Some(at) = text.find(words) else { continue };
        let behind = at + words.len();
        let Some(start) = text[behind..].find(|each: char| each.is_ascii_digit()) else { continue };
        let digits = text[behind + start..].find(|each: char| !limit::is_of_number(each));
        let end = digits.map_or(text.len(), |length| behind + start + length);
        text.replace_range(behind..end, " ");
    }
    text
}

/// Whether a message in lower case is about the cap on output alone.
pub(super) fn is_about_cap(text: &str) -> bool {
    // Names the cap only to compare with it.
    if text.contains("budget") {
        return false;
    }
    let without_caps = CAPS.iter().fold(text.to_owned(), |text, cap| text.replace(cap, ""));
    says(text, CAPS) && !says(&without_caps, READ)
}

/// Whether a limit of the rate is one that this request can never keep: it is larger than what is allowed at once.
pub(super) fn never_passes(text: &str) -> bool {
    let behind = |word: &str| limit::numbers(text.split_once(word)?.1).first().copied();
    let is_over = || Some(behind("requested")? > behind("limit")?);
    let counted = says(text, &["token", "tpm", "令牌", "токен", "トークン", "토큰"]);
    let waits = says(text, &["try again in", "retry after", "retry in", "try again at"]);
    counted && (is_over() == Some(true) || (says(text, NEVER) && !waits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_size_are_understood_in_any_order_and_in_many_languages() {
        for message in [
            // Invented: no server is known to say these.
            "The dialogue you handed over is 18,000 tokens, which goes beyond the 16,384 we can take in.",
            "Prompt overflow",
            "Sorry, this conversation is too big for me.",
            "no room left for your tokens (cap 8192)",
            "tokens: 18000, allowed: 16384",
            "The body you sent is larger than 65536 units",
            "Please shorten the prompt.",
            "Die Eingabe ist zu lang.",
            "Der Prompt überschreitet die zulässige Größe von 16.384 Token",
            "La requête est trop longue",
            "Le contexte dépasse la taille permise",
            "La solicitud es demasiado larga para este modelo",
            "O prompt ultrapassa o permitido",
            "Il contesto supera il massimo",
            "Запрос слишком длинный",
            "Количество токенов превышает допустимое",
            "请求过长，请缩短后重试",
            "提示词超出模型限制",
            "輸入太長",
            "入力が長すぎます",
            "トークン数が上限を超えています",
            "입력이 너무 깁니다. 컨텍스트가 한도를 초과했습니다",
            "Begäran är för lång för den här modellen",
            "Permintaan terlalu panjang untuk model ini",
            "Запит перевищує контекст моделі",
            "Požadavek je příliš dlouhý",
            "Το αίτημα είναι πολύ μεγάλο",
            "अनुरोध बहुत लंबा है",
            "คำขอยาวเกินไป",
            "الطلب طويل جدًا",
            "הבקשה ארוכה מדי",
            "درخواست بیش از حد طولانی است",
            // From servers.
            "Prompt 超长",
            "`inputs` must have less than 16384 tokens. Given: 18000",
            "Invalid request: Your request exceeded model token limit: 16384",
            "This model's maximum prompt length is 16384 but the request contains 18000 tokens.",
            "Request too large for model `x` in organization",
            "messages.0.content: string too long. Expected a string with maximum length 1048576, but got 2000000.",
        ] {
            assert!(speaks(&message.to_lowercase()), "{message}");
        }
    }

    #[test]
    fn other_complaints_are_not_about_the_size_of_the_request() {
        for message in [
            "Invalid value for 'temperature': must be at most 2",
            "Unrecognized request argument supplied: context_limit",
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            "max_completion_tokens must be less than or equal to 8192",
            "`max_output_tokens` exceeds the limit of 65536",
            "num_predict is more than 4096",
            "thinking.budget_tokens must be less than 32000",
            "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got 100 instead.",
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with \
             length 46 instead.",
            "Too many tools: 150, the maximum is 128",
            "messages.3.content.1.image: image exceeds 5 MB maximum: 6291456 bytes",
            "Your credit balance is too low to access the API.",
            "You exceeded your current quota, please check your plan and billing details.",
            "Rate limit exceeded: 60 requests per minute",
            "unknown field `input_tokens_limit`",
            "prompt_cache_key too long: at most 64 characters",
            "messages: roles must alternate between \"user\" and \"assistant\"",
            "`tool_use` ids must be unique",
            "messages: text content blocks must be non-empty",
            "Invalid JSON in request body at line 1 column 180000, more than expected",
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "Invalid schema for function 'search': 'maximum' is too large",
            "stop sequence is too long",
            "The model `x` does not exist",
            "参数错误：temperature 超出范围",
            // They name a context or a prompt, and are about time, memory, a name or a policy.
            "context deadline exceeded",
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            "The prompt exceeded the time limit of 30000 ms",
            "request queue is too long, try again later",
            "execution context exceeded memory limit",
            "prompt_cache_retention: '24h' is too long; at most '1h'",
            "The context lifetime '24h' is too long",
            "prompt id is longer than 64 characters",
            "prompt label is longer than 64 characters",
            "Your prompt was flagged as potentially violating our usage policy. It exceeds severity level 4.",
            "The prompt was rejected because it exceeds our content safety threshold",
            "The prompt exceeds risk level 4",
            "thinking.budget_tokens: must be greater than 1024 and less than max_tokens 16000",
            "上下文处理超时，超过限制",
            "boom",
            "",
        ] {
            assert!(!speaks(&message.to_lowercase()), "{message}");
        }
    }

    #[test]
    fn a_limit_of_the_rate_that_no_wait_lifts_is_a_size() {
        for (message, never) in [
            ("Request too large for gpt-x on tokens per min (TPM): Limit 10000, Requested 15000.", true),
            ("tokens per min: Limit 30,000, Requested 45,000. The input or output tokens must be reduced.", true),
            (
                "Rate limit reached on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 1.2s.",
                false,
            ),
            ("Too many tokens", false),
            ("Rate limit exceeded", false),
            ("Requests are too large for now, slow down", false),
        ] {
            assert_eq!(never_passes(&message.to_lowercase()), never, "{message}");
        }
    }
}
