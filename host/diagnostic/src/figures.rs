//! Numbers for people.

/// `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 message`, `2 messages`.
pub fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_is_counted_in_the_singular() {
        let shown = [0, 1, 2, 999, 1_000, 1_234_567].map(|number| counted(number, "session"));
        let expected =
            ["0 sessions", "1 session", "2 sessions", "999 sessions", "1,000 sessions", "1,234,567 sessions"];
        assert_eq!(shown, expected);
    }
}
