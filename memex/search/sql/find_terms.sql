-- The terms asked for, as a part knows them: number, and documents that have them.
SELECT term, tid, df FROM {part}.terms WHERE term IN ({terms})
