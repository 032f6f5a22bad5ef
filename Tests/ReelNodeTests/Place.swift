import Testing

@Suite struct ReelNodePlace {}
