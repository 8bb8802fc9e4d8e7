//! What cached tokens are, for people: the scopes of the trace format in five groups.

use cr_trace::Scope;

/// A kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// The global template (`g`).
    Template,
    /// The key's own context (`k`).
    Key,
    /// Documents (`d`).
    Document,
    /// Earlier turns and answers (`u`, `a`).
    History,
    /// Imported hash blocks (`b`).
    Block,
}

/// Tokens by group, in the order of [`Group::ALL`].
pub type GroupTokens = [u64; 5];

impl Group {
    /// All groups, in the order in which prompts hold them.
    pub const ALL: [Group; 5] = [Group::Template, Group::Key, Group::Document, Group::History, Group::Block];

    /// The group of a scope.
    pub fn of_scope(scope: Scope) -> Group {
        match scope {
            Scope::Global => Group::Template,
            Scope::Key => Group::Key,
            Scope::Document => Group::Document,
            Scope::User | Scope::Answer => Group::History,
            Scope::Block => Group::Block,
        }
    }

    /// Its name on screen.
    pub fn name(self) -> &'static str {
        match self {
            Group::Template => "template",
            Group::Key => "key",
            Group::Document => "documents",
            Group::History => "history",
            Group::Block => "blocks",
        }
    }
}
