/// The constants of fold version 1. They are not settings: nodes with different values would compute different states.
public enum Limits {
    /// The maximum size of a record's value in bytes.
    public static let value = 1 << 20
    /// The maximum number of levels of objects and arrays in an event; the event itself is the first.
    public static let depth = 32
    /// The maximum number of levels of objects and arrays in a seed.
    public static let seedDepth = 40
    /// The maximum length of a model, id, field name or `by`, in bytes of UTF-8.
    public static let name = 128
    /// The maximum number of parts of a batch.
    public static let parts = 100
    /// The maximum number of visible fields of an object.
    public static let fields = 1_024
    /// The maximum size of an object in bytes, as `{"name":value,…}` of its visible fields.
    public static let object = 768 << 10
    /// The maximum weight of the history of an object's texts. The weight is, for each deleted element, the square of
    /// the number of its deleters, plus `run` for each run of a text except the first. The fold drops a history that
    /// exceeds it.
    public static let history = 1 << 20
    /// The weight of a run. A splice with an old base visits each newer run, so this bounds the cost of a splice.
    static let run = 16
    /// The maximum number of lost fields of one site.
    package static let lostPerSite = 16
    /// The maximum number of lost fields of all sites of a stream.
    static let lostPerStream = 1_024
    /// The maximum number of sites of a stream that have not ended.
    public static let sites = 100_000
    /// The number of consumed events per mark.
    public static let markEvery: Int64 = 4_096
    /// The number of marks that are kept; the oldest is the horizon.
    public static let marks = 16
}
