//! Each surface is carried by its type: nothing is lost on the way through it.

use serde_json::Value;

use crate::{Sample, samples_v1};

fn assert_carried(samples: Vec<Sample>) {
    let mut faults = Vec::new();
    for sample in samples {
        let Sample { method, params, result, params_again, result_again, .. } = sample;
        let mut check = |what: &str, value: &Value, again: fn(&str, &str) -> greenroom::Result<Vec<u8>>| match again(
            method,
            &value.to_string(),
        ) {
            Ok(text) => {
                let back: Value = serde_json::from_slice(&text).unwrap_or_default();
                if back != *value {
                    faults.push(format!("{method}: the {what} {value}\n    came back as {back}"));
                }
            }
            Err(error) => faults.push(format!("{method}: the {what} {value}\n    is refused: {error:?}")),
        };
        check("params", &params, params_again);
        if let Some(result) = &result {
            check("result", result, result_again);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn surfaces_of_version_1() {
    assert_carried(samples_v1::all());
}

#[cfg(feature = "unstable_protocol_v2")]
#[test]
fn surfaces_of_version_2() {
    assert_carried(crate::samples_v2::all());
}
