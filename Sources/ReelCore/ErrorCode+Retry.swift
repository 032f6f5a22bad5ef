extension ErrorCode {
    /// Tells if the same request, sent again, can succeed.
    public enum Retry: String, Sendable {
        /// It cannot.
        case no
        /// It can, after a while; the answer says how long.
        case later
        /// It can once something was put right, as the advice says.
        case changed = "after a change"
    }
}
