/** The main file of a thread, which is bundled next to an application: it exports nothing. */
export {};
