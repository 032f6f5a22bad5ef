#if canImport(SwiftUI)
public import Reel
public import SwiftUI

extension EnvironmentValues {
    /// The typed objects that the views show; nil if no view above has set one.
    ///
    ///     TaskListView().environment(\.dataset, todo)
    ///
    ///     @Environment(\.dataset) private var todo
    @Entry public var dataset: Dataset?
}
#endif
