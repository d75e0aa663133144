//! Plans of a hostile engine: many segments, repeated messages, endless covers, keys and texts of many megabytes. Each is
//! refused or becomes a small view, in a time that grows with its size only.

#![allow(clippy::unwrap_used, missing_docs)]

mod attack {
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    use hermes_conversation::plan::{MOST_TEXT, ReferenceState, parts_limit, verify};
    use hermes_conversation::{
        Conversation, Draft, Excerpt, Item, MessageId, MessageRange, Plan, Refusal, Segment, Summary, ToolCall, View,
        closing, last_resort, render,
    };

    /// Far more than the work takes in a debug build on a busy machine, and far less than quadratic work would take.
    const DEADLINE: Duration = Duration::from_secs(600);
    const MIB: usize = 1 << 20;

    fn range(first: u64, last: u64) -> MessageRange {
        MessageRange::new(MessageId(first), MessageId(last))
    }

    /// So many messages of the user and the model in turn.
    fn conversation(count: u64) -> Conversation {
        Conversation::new((1..=count).map(|id| {
            let draft =
                if id % 2 == 1 { Draft::user("please go on", id) } else { Draft::assistant("done", Vec::new(), id) };
            draft.numbered(MessageId(id))
        }))
    }

    fn summary(key: &str, covers: Vec<MessageRange>) -> Summary {
        Summary { key: key.to_owned(), content: "what was said".to_owned(), covers }
    }

    struct Scene {
        conversation: Conversation,
        view: View,
        summaries: HashMap<String, Summary>,
    }

    impl Scene {
        fn of(conversation: Conversation) -> Self {
            Self { conversation, view: View::default(), summaries: HashMap::new() }
        }

        fn verify(&self, segments: Vec<Segment>) -> Result<View, Refusal> {
            let plan = Plan { segments, reason: String::new(), extra: Vec::new() };
            let ground = ReferenceState {
                conversation: &self.conversation,
                view: &self.view,
                summaries: &self.summaries,
                limit: u32::MAX,
                must_shrink: false,
            };
            let begun = Instant::now();
            let verified = verify(&plan, &ground);
            assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
            verified
        }
    }

    #[test]
    fn a_message_that_is_kept_thousands_of_times_is_copied_once() {
        let mut scene = Scene::of(conversation(4));
        let long = "x".repeat(35 * 1024);
        let mut messages: Vec<_> = scene.conversation.messages().to_vec();
        messages[0].draft = Draft::user("y".repeat(60 * 1024), 1);
        scene.conversation = Conversation::new(messages);
        let excerpt = Excerpt { id: MessageId(1), content: Some(long), arguments: Vec::new(), keep_images: false };
        scene.view =
            View { items: vec![Item::Excerpt(excerpt), Item::Messages(range(2, 4))], through: Some(MessageId(4)) };
        for count in [2, 5_000] {
            let segments = vec![Segment::Keep(range(1, 1)); count];
            assert_eq!(scene.verify(segments), Err(Refusal::Order(MessageId(1))), "{count}");
        }
        let most = parts_limit(4);
        let refused = scene.verify(vec![Segment::Keep(range(1, 1)); 100_000]);
        assert_eq!(refused, Err(Refusal::TooManyParts { parts: 100_000, most }));
        let kept = scene.verify(vec![Segment::Keep(range(1, 4))]).unwrap();
        assert_eq!(kept.items, scene.view.items);
    }

    #[test]
    fn the_whole_conversation_again_and_again_is_refused_at_the_first_repetition() {
        let scene = Scene::of(conversation(20_000));
        for segment in [Segment::Keep(range(1, 20_000)), Segment::Restore(range(1, 20_000))] {
            assert_eq!(scene.verify(vec![segment; 40_000]), Err(Refusal::Order(MessageId(1))));
        }
    }

    #[test]
    fn a_million_covers_are_refused_and_as_many_as_a_view_can_need_become_few_ranges() {
        let scene = Scene::of(conversation(20_001));
        let covering = |covers: Vec<MessageRange>| {
            scene.verify(vec![Segment::Summary(summary("s", covers)), Segment::Keep(range(20_001, 20_001))])
        };
        let refused = covering(vec![range(1, 20_000); 1_000_000]);
        assert_eq!(refused, Err(Refusal::TooManyParts { parts: 1_000_000, most: parts_limit(20_001) }));
        // Each range alone, in descending order, and the whole again and again.
        for covers in [(1..=20_000).rev().map(|id| range(id, id)).collect(), vec![range(1, 20_000); 40_000]] {
            let view = covering(covers).unwrap();
            let Some(Item::Summary(summary)) = view.items.first() else { panic!("{view:?}") };
            assert_eq!(summary.covers, [range(1, 20_000)]);
        }
        // A gap stays a gap.
        let covers = (1..=20_000).filter(|id| *id != 500).map(|id| range(id, id)).collect();
        assert_eq!(covering(covers), Err(Refusal::Uncovered(MessageId(500))));
    }

    #[test]
    fn many_summaries_that_cover_everything_are_checked_in_one_pass() {
        let scene = Scene::of(conversation(20_001));
        let covers = vec![range(1, 20_000)];
        let summaries = (0..40_000).map(|at| Segment::Summary(summary(&format!("s{at}"), covers.clone())));
        let view = scene.verify(summaries.chain([Segment::Keep(range(20_001, 20_001))]).collect()).unwrap();
        assert_eq!(view.items.len(), 40_001);
    }

    #[test]
    fn a_known_summary_is_recognised_by_its_covers_however_they_are_listed() {
        let mut scene = Scene::of(conversation(201));
        let one_by_one: Vec<MessageRange> = (1..=200).map(|id| range(id, id)).collect();
        let last = || Segment::Keep(range(201, 201));
        // A store of an earlier version keeps the list as it was.
        for known in [one_by_one.clone(), vec![range(1, 200)]] {
            let known = summary("s", known);
            scene.summaries = HashMap::from([("s".to_owned(), known.clone())]);
            for covers in [one_by_one.clone(), one_by_one.iter().rev().copied().collect()] {
                let view = scene.verify(vec![Segment::Summary(summary("s", covers)), last()]).unwrap();
                assert_eq!(view.items[0], Item::Summary(known.clone()), "the stored summary never changes");
            }
            let kept = scene.verify(vec![Segment::KeepSummary("s".to_owned()), last()]).unwrap();
            assert_eq!(kept.items[0], Item::Summary(known));
            let fewer = one_by_one[1..].to_vec();
            let refused = scene.verify(vec![Segment::Summary(summary("s", fewer)), last()]);
            assert_eq!(refused, Err(Refusal::KeyChanged("s".to_owned())));
        }
    }

    #[test]
    fn texts_beyond_any_window_are_refused_before_they_are_counted() {
        let scene = Scene::of(conversation(4));
        let long = Summary { content: "s".repeat(MOST_TEXT), ..summary("s", vec![range(1, 3)]) };
        let refused = scene.verify(vec![Segment::Summary(long), Segment::Keep(range(4, 4))]);
        assert_eq!(refused, Err(Refusal::TooMuchText { bytes: MOST_TEXT + 1 }));
        let arguments = vec![(String::new(), String::new()); 2 * MIB];
        let excerpt = Excerpt { id: MessageId(1), content: None, arguments, keep_images: false };
        let refused = scene.verify(vec![Segment::Excerpt(excerpt)]);
        assert_eq!(refused, Err(Refusal::TooMuchText { bytes: 32 * MIB }));
    }

    #[test]
    fn the_words_of_a_refusal_are_short_whatever_the_keys_are() {
        let scene = Scene::of(conversation(4));
        let key = format!("\u{1b}[2J{}", "k".repeat(8 * MIB));
        for segment in [Segment::KeepSummary(key.clone()), Segment::Summary(summary(&key, vec![range(1, 3)]))] {
            let refused = scene.verify(vec![segment]).unwrap_err().to_string();
            assert!(refused.len() < 200 && !refused.contains('\u{1b}'), "{refused}");
        }
    }

    #[test]
    fn shortened_arguments_of_many_calls_are_matched_in_one_pass() {
        let calls: Vec<ToolCall> = (0..20_000)
            .map(|at| ToolCall { id: format!("call_{at}"), name: "ls".to_owned(), arguments: "{\"a\":1}".to_owned() })
            .collect();
        let mut drafts = vec![Draft::user("go", 1), Draft::assistant("", calls.clone(), 2)];
        drafts.extend(calls.iter().map(|call| Draft::result(call, "done", 3)));
        drafts.push(Draft::user("on", 4));
        let last = drafts.len() as u64;
        let numbered = drafts.into_iter().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id)));
        let scene = Scene::of(Conversation::new(numbered));
        let excerpt = |arguments| Excerpt { id: MessageId(2), content: None, arguments, keep_images: false };
        let shown = |calls: &[ToolCall]| calls.iter().map(|call| (call.id.clone(), "{}".to_owned())).collect();
        let with = |excerpt| vec![Segment::Keep(range(1, 1)), Segment::Excerpt(excerpt), Segment::Keep(range(3, last))];
        let view = scene.verify(with(excerpt(shown(&calls)))).unwrap();
        let begun = Instant::now();
        assert_eq!(render::render(&scene.conversation, &view)[1].tool_calls[19_999].arguments, "{}");
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
        let twice: Vec<ToolCall> = calls.iter().chain([&calls[0]]).cloned().collect();
        let why = "it names a call twice";
        assert_eq!(scene.verify(with(excerpt(shown(&twice)))), Err(Refusal::Excerpt { id: MessageId(2), why }));
    }

    #[test]
    fn a_log_with_many_unanswered_calls_is_closed_and_rendered_in_one_pass() {
        // A file from elsewhere can bring a reply of any size.
        let calls: Vec<ToolCall> = (0..50_000)
            .map(|at| ToolCall { id: format!("call_{at}"), name: "ls".to_owned(), arguments: "{}".to_owned() })
            .collect();
        let mut drafts = vec![Draft::user("go", 1), Draft::assistant("", calls.clone(), 2)];
        drafts.extend(calls.iter().step_by(2).map(|call| Draft::result(call, "done", 3)));
        let numbered = drafts.into_iter().zip(1..).map(|(draft, id)| draft.numbered(MessageId(id)));
        let conversation = Conversation::new(numbered);
        let begun = Instant::now();
        assert_eq!(closing::open_calls(&conversation).len(), 25_000);
        let (mut rendering, shown) = render::Rendering::of(&conversation, &View::default());
        assert_eq!(shown.len(), 1, "the caller is held back until its results are complete");
        let rest = rendering.follow(&[Draft::user("on", 4).numbered(MessageId(100_000))]);
        assert_eq!(rendering.repairs().calls_answered, 25_000);
        assert_eq!(rest[1].tool_call_id.as_deref(), Some("call_0"));
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    }

    #[test]
    fn the_hosts_own_plan_copes_with_covers_of_an_older_store() {
        let scene = Scene::of(conversation(2_001));
        let heavy = summary("s", vec![range(1, 1_000); 100_000]);
        let view = View { items: vec![Item::Summary(heavy.clone())], through: Some(MessageId(1_000)) };
        let begun = Instant::now();
        let plan = last_resort::plan(&scene.conversation, &view, &HashMap::from([("s".to_owned(), heavy)]), 2_000);
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
        assert!(plan.unwrap().segments.contains(&Segment::KeepSummary("s".to_owned())));
    }
}
