/// The constants of fold version 1. No setting: two nodes with other numbers would fold differently.
public enum Limits {
    /// A record's value, in bytes.
    public static let value = 1 << 20
    /// Levels of objects and arrays in an event, itself the first.
    public static let depth = 32
    /// Levels of objects and arrays in a seed.
    public static let seedDepth = 40
    /// The longest model, id, field name or `by`, in bytes of UTF-8.
    public static let name = 128
    /// Parts of a batch.
    public static let parts = 100
    /// Visible fields of an object.
    public static let fields = 1_024
    /// An object as `{"name":value,…}` of what is visible, in bytes.
    public static let object = 768 << 10
    /// The largest weight of the history of an object's texts: for each deleted element the square of the number of its
    /// deleters, and `run` for each run of a text but the first. The fold drops a history that weighs more.
    public static let history = 1 << 20
    /// The weight of a run. A splice with an old base visits each newer run, so the number of runs bounds its cost.
    static let run = 16
    /// Fields of one site that are marked as lost.
    static let lostPerSite = 16
    /// Fields of all sites of a stream that are marked as lost.
    static let lostPerStream = 1_024
    /// Sites of a stream.
    public static let sites = 100_000
    /// A mark every so many consumed events.
    public static let markEvery: Int64 = 4_096
    /// Marks that are kept; the oldest is the horizon.
    public static let marks = 16
}
