/**
 * How long a test waits, in milliseconds, for whatever is to come: a browser, curves, a frame. It is a bound and measures nothing.
 * On two cores that nothing else uses a preset draws in two to three seconds, and its test with the terminal's run takes six; beside six
 * programs that use the cores it has a quarter of one and less, and a compiler's burst can hold it up for seconds more.
 */
export const WAIT_MS = 120_000;
