//! Random traffic in random schedules: answered once, in order, and nothing left behind.

use greenroom_conductor::Mode;
use greenroom_protocol::Dialect::{self, Legacy, Modern};

use crate::harness::{V1, V2};
use crate::network::{Network, call};

/// Xorshift; a failing run prints its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len())]
    }
}

struct Run {
    dice: Dice,
    network: Network,
    mode: Mode,
    /// Ids that were used, by side.
    asked: [Vec<String>; 2],
    /// The id of each call in order, by side; notifications have none.
    sent: [Vec<Option<String>>; 2],
}

const METHODS: [&str; 4] = ["x/ok", "x/ok", "x/fail", "x/wait"];

impl Run {
    fn new(seed: u64) -> (Self, usize) {
        let mut dice = Dice(seed.wrapping_mul(0x2545_F491_4F6C_DD1D) | 1);
        let dialects: Vec<Dialect> = (0..dice.roll(5)).map(|_| dice.pick(&[Legacy, Modern])).collect();
        let mode = dice.pick(&[Mode::Agent, Mode::Proxy]);
        let mut network = Network::new(mode, dice.pick(&[Legacy, Modern]), &dialects);
        network.initialize(dice.pick(&[V1, V2]));
        let components = dialects.len() + usize::from(mode == Mode::Agent);
        (Self { dice, network, mode, asked: Default::default(), sent: Default::default() }, components)
    }

    fn fresh_id(&mut self, side: usize) -> String {
        let number = self.asked[side].len();
        // On a nested chain both sides share a connection and thus its ids.
        let id = match self.dice.roll(3) {
            0 => format!("{}", 2 * number + side),
            1 => format!("\"{side}-{number}\""),
            _ => format!("{}", 9_007_199_254_740_993 + 2 * number + side),
        };
        self.asked[side].push(id.clone());
        id
    }

    /// One call with the next number of its side, as id, method and params.
    fn next_call(&mut self, side: usize) -> (Option<String>, &'static str, String) {
        let id = (self.dice.roll(3) > 0).then(|| self.fresh_id(side));
        self.sent[side].push(id.clone());
        let params = format!(r#"{{"n":{}}}"#, self.sent[side].len());
        let method = if id.is_some() { self.dice.pick(&METHODS) } else { "x/note" };
        (id, method, params)
    }

    /// Whether the initialize went all the way to the right end.
    fn is_initialized(&self) -> bool {
        self.network.right.seen.iter().any(|seen| seen.starts_with("initialize"))
    }

    fn talk(&mut self) {
        // An agent says nothing before it is initialised.
        let side = if self.is_initialized() { self.dice.roll(2) } else { 0 };
        match (self.dice.roll(8), side) {
            (0, side) if !self.asked[side].is_empty() => {
                let place = self.dice.roll(self.asked[side].len());
                let id = self.asked[side][place].clone();
                if side == 0 { self.network.left_cancels(&id) } else { self.network.right_cancels(&id) }
            }
            (1, 0) => {
                let entries: Vec<String> = (0..=self.dice.roll(3))
                    .map(|_| {
                        let (id, method, params) = self.next_call(0);
                        call(id.as_deref(), method, &params)
                    })
                    .collect();
                self.network.left_sends(format!("[{}]", entries.join(",")));
            }
            (_, 0) => {
                let (id, method, params) = self.next_call(0);
                self.network.left_sends(call(id.as_deref(), method, &params));
            }
            (_, side) => {
                let (id, method, params) = self.next_call(side);
                self.network.right_calls(id.as_deref(), method, &params);
            }
        }
    }

    fn step(&mut self) {
        let choice = self.dice.roll(1000);
        self.network.step(choice);
    }

    fn answers(&self, side: usize, id: &str) -> &[String] {
        let end = if side == 1 && self.mode == Mode::Agent { &self.network.right } else { &self.network.left };
        end.answers.get(id).map_or(&[], Vec::as_slice)
    }

    /// Every request of this side has exactly one answer.
    fn check_answers(&self, side: usize, seed: u64) {
        for id in &self.asked[side] {
            let answers = self.answers(side, id);
            assert_eq!(answers.len(), 1, "seed {seed}: answers to {id} of side {side}: {answers:?}");
        }
    }

    /// The calls of this side arrived in their order. With `all`, each one did, unless it was
    /// cancelled while it waited inside.
    fn check_order(&self, side: usize, all: bool, seed: u64) {
        let seen = if side == 0 { &self.network.right.seen } else { &self.network.left.seen };
        let numbers = seen.iter().filter_map(|seen| seen.split_once(r#" {"n":"#)?.1.strip_suffix('}'));
        let numbers: Vec<usize> = numbers.map(|number| number.parse().expect("a number")).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "seed {seed}: order of side {side}: {numbers:?}");
        for (index, id) in self.sent[side].iter().enumerate().filter(|_| all) {
            let cancelled = id.as_ref().is_some_and(|id| self.answers(side, id)[0].contains("-32800"));
            assert!(
                cancelled || numbers.contains(&(index + 1)),
                "seed {seed}: call {} of side {side} is lost",
                index + 1
            );
        }
    }
}

#[test]
fn random_traffic_is_answered_once_and_in_order() {
    for seed in 1..=200 {
        // Shown by the test harness when the run fails.
        eprintln!("seed {seed}");
        let (mut run, _) = Run::new(seed);
        for _ in 0..120 {
            if run.dice.roll(3) == 0 {
                run.talk();
            }
            run.step();
        }
        run.network.finish();
        run.network.finish();
        for side in [0, 1] {
            run.check_answers(side, seed);
            run.check_order(side, true, seed);
        }
        assert_eq!(run.network.left.answers["\"init\""].len(), 1, "seed {seed}");
        assert!(run.network.router.is_idle(), "seed {seed}: {:?}", run.network.router);
    }
}

#[test]
fn a_death_at_a_random_moment_leaves_no_request_unanswered() {
    for seed in 1..=200 {
        eprintln!("seed {seed}");
        let (mut run, components) = Run::new(seed);
        if components == 0 {
            continue;
        }
        let (moment, victim) = (run.dice.roll(120), run.dice.roll(components));
        for turn in 0..120 {
            if turn == moment {
                run.network.kill(victim);
            }
            if run.dice.roll(3) == 0 {
                run.talk();
            }
            run.step();
        }
        run.network.finish();
        run.network.finish();
        run.check_answers(0, seed);
        let agent_died = run.mode == Mode::Agent && victim == components - 1;
        if !agent_died {
            run.check_answers(1, seed);
        }
        run.check_order(0, false, seed);
        run.check_order(1, false, seed);
        assert!(run.network.router.is_idle(), "seed {seed}: {:?}", run.network.router);
    }
}
