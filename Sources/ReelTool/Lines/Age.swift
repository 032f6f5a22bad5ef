/// Returns an age as text, in the unit that fits: `14 s`, `3 days`. `ms`: milliseconds.
func age(ms: Int64) -> String {
    let seconds = max(0, ms) / 1_000
    switch seconds {
    case ..<120: return "\(seconds) s"
    case ..<7_200: return "\(seconds / 60) min"
    case ..<172_800: return "\(seconds / 3_600) h"
    default: return "\(seconds / 86_400) days"
    }
}
