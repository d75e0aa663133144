//! Bars for shares.

/// A bar of `width` columns, exact to an eighth of a column.
pub(crate) fn bar(share: f64, width: usize) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let eighths = (share * (width * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(PARTS[eighths % 8]);
    }
    let filled = eighths.div_ceil(8);
    bar.push_str(&"·".repeat(width - filled));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_wide_as_asked_and_filled_to_the_share() {
        for (share, shown) in [
            (0.0, "····"),
            (1.0, "████"),
            (0.5, "██··"),
            (0.53, "██▏·"),
            (7.0, "████"),
            (-1.0, "····"),
            (f64::NAN, "····"),
        ] {
            assert_eq!(bar(share, 4), shown, "{share}");
        }
    }
}
