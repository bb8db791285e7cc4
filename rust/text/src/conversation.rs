//! Conversations of a person with an assistant: who wrote a passage, and questions in the first person.

/// Begins a message of the person in a conversation, as the readers of chats and sessions write it.
const PERSON: &str = "user:";
/// English words with which people speak of themselves. Others, such as "ours", are rare in questions.
const FIRST_PERSON: &[&str] = &["i", "me", "mine", "my", "myself"];

/// Return whether a passage begins with a message of the person, not of the assistant or of a tool.
pub fn begins_with_person(text: &str) -> bool {
    text.starts_with(PERSON)
}

/// Return whether an English query is in the first person: "When does my first sprint end?"
pub fn is_in_first_person(query: &str) -> bool {
    let words = query.split(|c: char| !c.is_alphanumeric());
    { words }.any(|word| FIRST_PERSON.iter().any(|own| word.eq_ignore_ascii_case(own)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_person_begin_with_the_role() {
        assert!(begins_with_person("user: When does it end?\n\nassistant: On Friday."));
        for text in ["assistant: user: no", "The user: a person", "users: all", "User: Ada", ""] {
            assert!(!begins_with_person(text), "{text}");
        }
    }

    #[test]
    fn questions_in_the_first_person_have_a_word_for_it() {
        for query in ["When does my sprint end?", "What have I planned?", "I've said what?", "Remind me."] {
            assert!(is_in_first_person(query), "{query}");
        }
        for query in ["When does it end?", "What is in army.txt?", "the mines of Oslo", ""] {
            assert!(!is_in_first_person(query), "{query}");
        }
    }
}
