//! Token values as a pure function of content.
//!
//! The token at an offset of a content is a hash of both, reduced to the vocabulary. So a real model prefills real,
//! reproducible tokens, equal content always has equal tokens, and a simulator needs none.

use crate::content::Segment;

/// The SplitMix64 finaliser (Steele, Lea, Flood 2014): a bijection that spreads every bit.
pub fn mix64(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The token at `offset` of the content hashed to `content`, in `0..vocab`. `vocab` must not be 0.
pub fn token_at(content: u64, offset: u32, vocab: u32) -> u32 {
    let hash = mix64(content ^ mix64(u64::from(offset)));
    ((u128::from(hash) * u128::from(vocab)) >> 64) as u32
}

/// The tokens of a prompt, appended to `out`.
pub fn push_prompt_tokens(prompt: &[Segment], vocab: u32, out: &mut Vec<u32>) {
    for segment in prompt {
        let content = segment.content().hash64();
        out.extend((0..segment.tokens()).map(|offset| token_at(content, offset, vocab)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::ContentId;

    #[test]
    fn equal_content_has_equal_tokens_whatever_precedes_it() {
        let mut a = Vec::new();
        let mut b = Vec::new();
        push_prompt_tokens(&[Segment(ContentId::key("x"), 20)], 8192, &mut a);
        push_prompt_tokens(
            &[Segment(ContentId::global("t"), 7), Segment(ContentId::key("x"), 20)],
            8192,
            &mut b,
        );
        assert_eq!(a, b[7..]);
        assert!(b.iter().all(|&token| token < 8192));
    }

    #[test]
    fn tokens_spread_over_the_vocabulary() {
        let content = ContentId::key("x").hash64();
        let mut seen = [0u32; 16];
        for offset in 0..16_000 {
            seen[token_at(content, offset, 16) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
