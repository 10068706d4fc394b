// The texts of the pages in Chinese, by the English ones. A test finds what is missing.

export const CHINESE: Readonly<Record<string, string>> = {};
