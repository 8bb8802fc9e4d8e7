//! Traffic as text: vLLM's `custom` datasets and conversations in ShareGPT's form.
//!
//! ```json
//! {"prompt": "What is a prefix?", "output_tokens": 40}
//! ```
//! is a row of a custom dataset, one a line; what is to be decoded is told by `output_tokens`, or by the text of
//! `expected_output`, `completion` or `output`, or not at all.
//! ```json
//! [{"id": "c1", "conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi!"}]}]
//! ```
//! is a file of conversations: an array, or one object a line. `messages` with `role` and `content` (the form of chat
//! requests) is read the same way. Neither form has times or tokens: a tokeniser and an arrival process are the importer's.

mod blocks;
mod records;

pub use blocks::{TokenBlock, TokenChain};

use crate::tolerance::{Patience, Rows, Tolerance};
use crate::{Key, TraceError};
use records::Records;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::io::BufRead;

/// Which form a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// vLLM's custom datasets: a prompt a row.
    Custom,
    /// ShareGPT's conversations.
    ShareGpt,
}

/// One exchange: what is asked, and what was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// What the model is given beyond the conversation so far; more than white space.
    pub prompt: String,
    /// What is to be decoded.
    pub answer: Answer,
}

/// What is known of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its text.
    Text(String),
    /// Its length in tokens.
    Tokens(u32),
    /// Nothing.
    Unknown,
}

/// A conversation of at least one turn; a row of a custom dataset is one of one turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The key that the row names, where a field was asked for.
    pub key: Option<Key>,
    /// In order.
    pub turns: Vec<Turn>,
}

/// Reads conversations one after the other. After the first error the iterator ends.
#[derive(Debug)]
pub struct TextReader<R> {
    records: Records<R>,
    form: TextForm,
    key_field: Option<String>,
    patience: Patience,
}

impl<R: BufRead> TextReader<R> {
    /// Conversations of `reader`, which errors call `file`; `key_field` names the field that holds the routing key.
    ///
    /// # Errors
    ///
    /// The input cannot be read.
    pub fn new(
        reader: R,
        file: &str,
        form: TextForm,
        key_field: Option<String>,
        tolerance: Tolerance,
    ) -> Result<TextReader<R>, TraceError> {
        let records = Records::new(reader, file)?;
        Ok(TextReader { records, form, key_field, patience: Patience::new(tolerance) })
    }

    /// What errors call the input.
    pub fn file(&self) -> &str {
        self.records.file()
    }
}

impl<R: BufRead> Rows for TextReader<R> {
    type Row = Conversation;

    fn read(&mut self) -> Result<Option<Conversation>, TraceError> {
        if !self.records.advance()? {
            if self.records.number() > 0 {
                return Ok(None);
            }
            let what = "there is no conversation in it".into();
            return Err(TraceError::File { file: self.records.file().into(), what });
        }
        let row: Map<String, Value> = self.records.json()?;
        let line = self.records.number();
        let fault = |what: String| TraceError::line(self.records.file(), line, what);
        let key = self.key_field.as_deref().map(|field| key_of(&row, field)).transpose().map_err(fault)?;
        let turns = match self.form {
            TextForm::Custom => custom(row).map(|turn| vec![turn]),
            TextForm::ShareGpt => conversation(row),
        };
        Ok(Some(Conversation { line, key, turns: turns.map_err(fault)? }))
    }

    fn patience(&mut self) -> &mut Patience {
        &mut self.patience
    }
}

impl<R: BufRead> Iterator for TextReader<R> {
    type Item = Result<Conversation, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_row()
    }
}

/// The routing key in a field: text or a number.
fn key_of(row: &Map<String, Value>, field: &str) -> Result<Key, String> {
    let key = match row.get(field) {
        Some(Value::String(text)) => Key::from(text.as_str()),
        Some(Value::Number(number)) => Key::from(number.to_string()),
        Some(other) => return Err(format!("{field:?} is {other}; a key is text or a number")),
        None => {
            let fields = row.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(format!("there is no field {field:?}; the row has {fields}"));
        }
    };
    if key.is_empty() || !crate::request::is_printable(&key) {
        return Err(format!("{field:?} is {key:?}; a key is printable text"));
    }
    Ok(key)
}

fn text_of(row: &mut Map<String, Value>, field: &str) -> Result<Option<String>, String> {
    match row.remove(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("{field:?} is no text")),
    }
}

/// A row of a custom dataset.
fn custom(mut row: Map<String, Value>) -> Result<Turn, String> {
    let Some(prompt) = text_of(&mut row, "prompt")? else {
        let hint = if row.contains_key("conversations") || row.contains_key("messages") {
            "; this is a conversation (--from sharegpt)"
        } else {
            ""
        };
        return Err(format!("there is no text in \"prompt\"{hint}"));
    };
    if prompt.trim().is_empty() {
        return Err("the prompt is empty".into());
    }
    let answer = match row.get("output_tokens") {
        None | Some(Value::Null) => {
            let mut answer = Answer::Unknown;
            for field in ["expected_output", "completion", "output"] {
                if let Some(text) = text_of(&mut row, field)? {
                    answer = Answer::Text(text);
                    break;
                }
            }
            answer
        }
        Some(tokens) => match tokens.as_u64().map(u32::try_from) {
            Some(Ok(tokens)) if tokens > 0 => Answer::Tokens(tokens),
            _ => return Err(format!("output_tokens is {tokens}; it is a number of at least 1")),
        },
    };
    Ok(Turn { prompt, answer })
}

/// One message of a conversation, in ShareGPT's names or in those of chat requests.
#[derive(Deserialize)]
struct Message {
    #[serde(alias = "role")]
    from: String,
    #[serde(alias = "content", default)]
    value: Option<String>,
}

/// The turns of a conversation: whatever stands before an answer is its prompt.
fn conversation(mut row: Map<String, Value>) -> Result<Vec<Turn>, String> {
    let Some(messages) = row.remove("conversations").or_else(|| row.remove("messages")) else {
        let hint = if row.contains_key("prompt") { "; this is a custom dataset (--from custom)" } else { "" };
        return Err(format!("there is neither \"conversations\" nor \"messages\"{hint}"));
    };
    let messages: Vec<Message> = serde_json::from_value(messages).map_err(|error| {
        format!("a message has \"from\" and \"value\", or \"role\" and \"content\": {error}")
    })?;
    let (mut turns, mut prompt, mut asked) = (Vec::new(), String::new(), false);
    for Message { from, value } in messages {
        let text = value.unwrap_or_default();
        let answers = matches!(from.as_str(), "gpt" | "assistant" | "chatgpt" | "model" | "bing" | "bard");
        if answers && asked {
            turns.push(Turn { prompt: std::mem::take(&mut prompt), answer: Answer::Text(text) });
            asked = false;
            continue;
        }
        // An answer to nothing (a conversation cut in parts) is context for what is asked next.
        if !prompt.is_empty() && !text.is_empty() {
            prompt.push('\n');
        }
        prompt.push_str(&text);
        asked |= !answers && from != "system" && !text.trim().is_empty();
    }
    if asked {
        turns.push(Turn { prompt, answer: Answer::Unknown });
    }
    if turns.is_empty() {
        return Err("nobody asks anything in this conversation".into());
    }
    Ok(turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, form: TextForm, key: Option<&str>) -> Vec<Result<Conversation, String>> {
        TextReader::new(text.as_bytes(), "x", form, key.map(Into::into), Tolerance::default())
            .expect("opens")
            .map(|row| row.map_err(|error| error.to_string()))
            .collect()
    }

    fn turn(prompt: &str, answer: Answer) -> Turn {
        Turn { prompt: prompt.into(), answer }
    }

    #[test]
    fn custom_rows_tell_what_they_know() {
        let text = r#"{"prompt":"a b","output_tokens":7,"tenant":"t"}
{"prompt":"c","completion":"d e","tenant":8}
{"prompt":"f","tenant":"t"}"#;
        let rows: Result<Vec<_>, _> = read(text, TextForm::Custom, Some("tenant")).into_iter().collect();
        let rows = rows.expect("reads");
        assert_eq!(rows[0].turns, [turn("a b", Answer::Tokens(7))]);
        assert_eq!(rows[1].turns, [turn("c", Answer::Text("d e".into()))]);
        assert_eq!((rows[2].line, rows[2].turns[0].answer.clone()), (3, Answer::Unknown));
        let keys: Vec<_> = rows.iter().map(|row| row.key.clone().expect("is named")).collect();
        assert_eq!(keys, ["t", "8", "t"]);
    }

    #[test]
    fn conversations_become_turns() {
        let text = r#"[{"id":"a","conversations":[{"from":"system","value":"S"},{"from":"human","value":"1"},
            {"from":"gpt","value":"2"},{"from":"human","value":"3"},{"from":"human","value":"4"},{"from":"gpt","value":"5"}]},
            {"messages":[{"role":"assistant","content":"x"},{"role":"user","content":"y"}]}]"#;
        let rows = read(text, TextForm::ShareGpt, None);
        let answer = |text: &str| Answer::Text(text.into());
        assert_eq!(
            rows[0].as_ref().expect("reads").turns,
            [turn("S\n1", answer("2")), turn("3\n4", answer("5"))]
        );
        assert_eq!(rows[1].as_ref().expect("reads").turns, [turn("x\ny", Answer::Unknown)]);
        assert_eq!(rows[1].as_ref().expect("reads").line, 3);
    }

    #[test]
    fn faults_have_their_line() {
        for (form, text, wanted) in [
            (TextForm::Custom, "{\"prompt\":\" \"}", "x:1: the prompt is empty"),
            (TextForm::Custom, "{\"prompt\":[1]}", "x:1: \"prompt\" is no text"),
            (
                TextForm::Custom,
                "{\"messages\":[]}",
                "x:1: there is no text in \"prompt\"; this is a conversation (--from sharegpt)",
            ),
            (
                TextForm::Custom,
                "{\"prompt\":\"a\",\"output_tokens\":0}",
                "x:1: output_tokens is 0; it is a number of at least 1",
            ),
            (TextForm::Custom, "", "x: there is no conversation in it"),
            (TextForm::ShareGpt, "[]", "x: there is no conversation in it"),
            (
                TextForm::ShareGpt,
                "{\"prompt\":\"a\"}",
                "x:1: there is neither \"conversations\" nor \"messages\"; this is a custom dataset (--from custom)",
            ),
            (TextForm::ShareGpt, "{\"messages\":[]}", "x:1: nobody asks anything in this conversation"),
            (
                TextForm::ShareGpt,
                "{\"messages\":[{\"role\":1}]}",
                "x:1: a message has \"from\" and \"value\", or \"role\" and \"content\": invalid type: integer `1`, expected a string",
            ),
        ] {
            let rows = read(text, form, None);
            assert_eq!(rows.last().expect("one").as_ref().expect_err(text), wanted);
        }
        let rows = read("{\"prompt\":\"a\",\"x\":1}", TextForm::Custom, Some("tenant"));
        assert_eq!(rows[0], Err("x:1: there is no field \"tenant\"; the row has prompt, x".into()));
    }
}
