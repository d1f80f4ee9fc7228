//! Interleaved rounds (A B C, C B A, …) of measurements that give several figures each, with progress on standard error.

use crate::measure::Spread;

/// `rounds` rounds over contestants, after a warm-up round. Returns a spread for each figure of each contestant.
pub fn interleave(
    what: &str,
    names: &[&str],
    rounds: usize,
    mut measure: impl FnMut(usize) -> Vec<f64>,
) -> Vec<Vec<Spread>> {
    let mut figures: Vec<Vec<Vec<f64>>> = vec![Vec::new(); names.len()];
    for round in 0..=rounds {
        for step in 0..names.len() {
            let i = if round % 2 == 0 { step } else { names.len() - 1 - step };
            let values = measure(i);
            let shown: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
            let which = if round == 0 { "warm-up".to_owned() } else { format!("round {round} of {rounds}") };
            eprintln!("  {what}, {which}: {}: {}", names[i], shown.join(" "));
            if round == 0 {
                figures[i] = vec![Vec::new(); values.len()];
            } else {
                figures[i].iter_mut().zip(values).for_each(|(all, value)| all.push(value));
            }
        }
    }
    figures.into_iter().map(|all| all.into_iter().map(Spread::new).collect()).collect()
}

/// Median, least and most, as values of a row.
pub fn three(spread: &Spread, scale: f64, decimals: i32) -> [serde_json::Value; 3] {
    [spread.median(), spread.min(), spread.max()].map(|value| crate::report::round(value * scale, decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_warm_up_does_not_count_and_the_order_turns() {
        let mut order = Vec::new();
        let spreads = interleave("test", &["a", "b"], 2, |i| {
            order.push(i);
            vec![order.len() as f64, 7.0]
        });
        assert_eq!(order, [0, 1, 1, 0, 0, 1]);
        assert_eq!((spreads[0][0].min(), spreads[0][0].max()), (4.0, 5.0));
        assert_eq!(spreads[1][1].median(), 7.0);
    }
}
