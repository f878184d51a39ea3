//! How the ranks' time divides into activities.

use flowcast_replay::timeline::{Activity, Timeline};
use flowcast_units::Time;

/// Time in each activity, summed over the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ActivityTimes([Time; Activity::ALL.len()]);

impl ActivityTimes {
    /// Of a whole timeline.
    pub fn of(timeline: &Timeline) -> ActivityTimes {
        let mut times = ActivityTimes::default();
        for segment in timeline.ranks.iter().flatten() {
            times.0[segment.activity as usize] += segment.end - segment.start;
        }
        times
    }

    /// Time in one activity.
    pub fn time_in(&self, activity: Activity) -> Time {
        self.0[activity as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowcast_replay::timeline::Segment;

    #[test]
    fn activities_add_up_over_segments_and_ranks() {
        let segment = |start: f64, end: f64, activity| Segment {
            start: Time::from_micros(start),
            end: Time::from_micros(end),
            activity,
        };
        let timeline = Timeline {
            ranks: vec![
                vec![segment(0.0, 2.0, Activity::Compute), segment(2.0, 5.0, Activity::Transfer)],
                vec![segment(1.0, 2.0, Activity::Compute)],
            ],
            messages: vec![],
        };
        let times = ActivityTimes::of(&timeline);
        assert_eq!(times.time_in(Activity::Compute), Time::from_micros(3.0));
        assert_eq!(times.time_in(Activity::Transfer), Time::from_micros(3.0));
        assert_eq!(times.time_in(Activity::Collective), Time::ZERO);
    }

    #[test]
    fn the_order_of_the_legend_is_the_order_of_the_codes() {
        for (code, activity) in Activity::ALL.iter().enumerate() {
            assert_eq!(*activity as usize, code);
        }
    }
}
