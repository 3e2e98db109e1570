//! The page, with 100,000 events.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;

use greenroom_conductor::trace_viewer::{TraceSource, TraceViewer, TraceViewerConfig};

use crate::driver::Browser;

const EVENTS: usize = 100_000;

/// Turns of ten events: a prompt through a proxy, three updates each way, an MCP call, the answers.
fn turn(number: usize, out: &mut String) {
    let at = |step: usize| number as f64 * 0.01 + step as f64 * 0.001;
    let session = format!("s{}", number % 7);
    let mut call = |step, kind: &str, protocol: &str, from: &str, to: &str, id: &str, method: &str, params: &str| {
        let ts = at(step);
        let session = if protocol == "acp" { format!(r#","session":"{session}""#) } else { String::new() };
        writeln!(
            out,
            r#"{{"type":"{kind}","ts":{ts:.6},"protocol":"{protocol}","from":"{from}","to":"{to}"{id},"method":"{method}"{session},"params":{params}}}"#
        )
        .expect("a string");
    };
    let (left, right) = (format!(r#","id":{number}"#), format!(r#","id":"p-{number}""#));
    let prompt =
        format!(r#"{{"sessionId":"{session}","prompt":[{{"type":"text","text":"prompt number {number} <b>&amp;"}}]}}"#);
    call(0, "request", "acp", "Client", "Proxy(0)", &left, "session/prompt", &prompt);
    call(1, "request", "acp", "Proxy(0)", "Agent", &right, "session/prompt", &prompt);
    for step in [2, 4] {
        let text = if step == 2 { format!("piece {number}") } else { "more".to_owned() };
        let update = format!(
            r#"{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}"#
        );
        call(step, "notification", "acp", "Agent", "Proxy(0)", "", "session/update", &update);
        call(step + 1, "notification", "acp", "Proxy(0)", "Client", "", "session/update", &update);
    }
    call(
        6,
        "request",
        "mcp",
        "Agent",
        "Proxy(0)",
        &format!(r#","id":{}"#, 1_000_000 + number),
        "tools/call",
        r#"{"name":"search"}"#,
    );
    let mut answer = |step, from: &str, to: &str, id: &str, payload: &str, is_error: bool| {
        let ts = at(step);
        writeln!(out, r#"{{"type":"response","ts":{ts:.6},"from":"{from}","to":"{to}"{id},"is_error":{is_error},"payload":{payload}}}"#).expect("a string");
    };
    answer(
        7,
        "Proxy(0)",
        "Agent",
        &format!(r#","id":{}"#, 1_000_000 + number),
        r#"{"code":-32001,"message":"no such tool"}"#,
        true,
    );
    answer(8, "Agent", "Proxy(0)", &right, r#"{"stopReason":"end_turn"}"#, false);
    answer(9, "Proxy(0)", "Client", &left, r#"{"stopReason":"end_turn"}"#, false);
}

/// The page is scrolled as with a wheel, in the middle of everything: milliseconds that a frame
/// takes, and how many of them are the page's own work, layout included. The rest is how this machine
/// draws without a graphics processor.
const SCROLL: &str = "new Promise(done => {
    const box = document.getElementById('scroll'), start = box.scrollHeight / 2, steps = 120, frames = [], own = [];
    const middle = times => times.sort((a, b) => a - b)[times.length >> 1];
    let step = 0, before = performance.now();
    const frame = () => {
        const now = performance.now(); frames.push(now - before); before = now;
        box.scrollTop = start + 150 * step;
        draw(); box.querySelector('.row').offsetWidth;
        own.push(performance.now() - now);
        if (step++ < steps) requestAnimationFrame(frame);
        else done({ frame: middle(frames), own: middle(own) });
    };
    requestAnimationFrame(frame);
})";

/// The text of the rows in sight.
const ROWS: &str = "[...document.querySelectorAll('.row')].map(row => row.innerText)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_events_are_shown_filtered_searched_and_followed() {
    let path = std::env::temp_dir().join(format!("greenroom-viewer-{}.jsons", std::process::id()));
    let mut text = String::new();
    (0..EVENTS / 10).for_each(|number| turn(number, &mut text));
    std::fs::write(&path, &text).expect("a file");
    let config = TraceViewerConfig { port: 0, open_browser: false };
    let viewer = TraceViewer::bind(TraceSource::File(path.clone()), config).expect("a port");
    let url = viewer.url();
    let server = tokio::spawn(viewer.run());
    let looked = tokio::task::spawn_blocking({
        let path = path.clone();
        move || look(&url, &path)
    });
    looked.await.expect("no panic");
    server.abort();
    std::fs::remove_file(&path).expect("a file");
}

fn look(url: &str, path: &std::path::Path) {
    let browser = Browser::start();
    let (page, _) = url.split_once('#').expect("a token");
    browser.open(page);
    browser.until("document.getElementById('state').textContent.includes('token')");
    browser.open("about:blank");
    browser.open(url);
    browser.until("document.getElementById('count').textContent === '100000 of 100000 events'");

    // Lanes in the order of the chain, and only the rows in sight exist.
    assert_eq!(
        browser.eval("[...document.querySelectorAll('#lanes span')].map(lane => lane.textContent).join()"),
        "Client,Proxy(0),Agent"
    );
    assert!(browser.eval("document.querySelectorAll('#space *').length").as_u64() < Some(700));
    let shown = browser.eval(ROWS).to_string();
    assert!(shown.contains("9999"), "it follows the end: {shown}");

    let frames = browser.wait_for(SCROLL);
    assert!(frames["own"].as_f64() < Some(16.0) && frames["frame"].as_f64() < Some(200.0), "{frames}");
    eprintln!("scrolling 100,000 events, milliseconds a frame: {frames}");

    // The middle: labels, elapsed times, previews, text that is no markup, spans of open requests.
    browser.eval(
        "(document.getElementById('follow').checked = false, document.getElementById('scroll').scrollTop = 50000 * 30)",
    );
    browser.until("[...document.querySelectorAll('.row')].some(row => +row.dataset.index === 50000)");
    let rows = browser.eval(ROWS).to_string();
    for part in [
        "session/prompt",
        "prompt number 5000 <b>&amp;",
        "agent_message_chunk: piece 5000",
        "error tools/call",
        "1.0 ms",
        "-32001: no such tool",
        "end_turn",
    ] {
        assert!(rows.contains(part), "{part} is missing in {rows}");
    }
    assert!(browser.eval("document.querySelectorAll('.span').length").as_u64() > Some(2));
    assert_eq!(browser.eval("document.querySelectorAll('.row b').length"), 0);
    let color = |index: usize| {
        browser.eval(&format!("document.querySelector('.row[data-index=\"{index}\"] .arrow').style.color"))
    };
    assert_eq!(color(50_000), color(50_009), "a request and its answer have one colour");
    assert_ne!(color(50_000), color(50_001));

    // A chosen message, its other half, the panel and the lanes.
    browser.eval("document.querySelector('.row[data-index=\"50000\"]').click()");
    let json = browser.eval("document.getElementById('json').textContent");
    assert!(
        json.as_str().is_some_and(|json| json.contains("\"id\": 5000,") && json.contains("prompt number 5000 <b>")),
        "{json}"
    );
    browser.eval("document.getElementById('jump').click()");
    browser.until("document.getElementById('title').textContent === 'response: session/prompt'");
    browser.until("document.querySelector('.row.picked').dataset.index === '50009' && document.querySelector('.row.pair').dataset.index === '50000'");
    let width = || browser.eval("document.getElementById('panel').offsetWidth").as_i64().expect("a number");
    let grip = browser.eval("(box => [Math.round(box.x + 3), Math.round(box.y + 200)])(document.getElementById('grip').getBoundingClientRect())");
    let (x, y) = (grip[0].as_i64().expect("x"), grip[1].as_i64().expect("y"));
    let before = width();
    browser.drag((x, y), (x - 150, y));
    assert!((width() - before - 150).abs() < 10, "{before} became {}", width());
    browser.eval("(slider => { slider.value = 400; slider.oninput(); })(document.getElementById('width'))");
    browser.until("document.querySelector('#lanes span').style.left === '310px'");
    browser.eval("(slider => { slider.value = 300; slider.oninput(); })(document.getElementById('width'))");
    browser.until("document.querySelector('#lanes span').style.left === '260px'");
    browser.screenshot("viewer-100000.png");

    // Filters and the search.
    let count = |expected: &str| {
        browser.until(&format!("document.getElementById('count').textContent === '{expected} of 100000 events'"))
    };
    let toggle = |id: &str| drop(browser.eval(&format!("document.getElementById('{id}').click()")));
    for (id, left) in [("responses", "70000"), ("mcp", "80000"), ("acp", "20000")] {
        toggle(id);
        count(left);
        toggle(id);
        count("100000");
    }
    let search =
        |text: &str| {
            drop(browser.eval(&format!(
                "(box => {{ box.value = '{text}'; box.oninput(); }})(document.getElementById('search'))"
            )))
        };
    search("PIECE 4321\"");
    count("2");
    assert!(browser.eval(ROWS).to_string().contains("piece 4321"));
    search("");
    count("100000");

    // New events come by themselves; following goes with them.
    toggle("follow");
    let mut more = String::new();
    turn(77_777, &mut more);
    File::options().append(true).open(path).expect("the file").write_all(more.as_bytes()).expect("writable");
    browser.until("document.getElementById('count').textContent === '100010 of 100010 events'");
    browser.until(&format!("{ROWS}.join().includes('77777')"));
    // Scrolling up ends it.
    browser.eval("document.getElementById('scroll').scrollTop = 0");
    browser.until("!document.getElementById('follow').checked");
    // A recording that begins anew is shown anew.
    let mut fresh = String::new();
    turn(5, &mut fresh);
    std::fs::write(path, format!("{fresh}{{\"type\":\"lost\",\"events\":12,\"bytes\":3456}}\nbroken\n"))
        .expect("the file");
    browser.until("document.getElementById('count').textContent === '11 of 11 events, 1 unreadable lines'");
    browser.until(&format!("{ROWS}.join().includes('12 events are missing here')"));
}
