// Package store has the rows of an OVSDB database and changes them by transactions (RFC 7047 section
// 5).
//
// From the top:
//
//   - execute.go: the operations of a transact request, as JSON.
//   - waitop.go: the operation that waits for rows to fulfil its conditions.
//   - condition.go, mutation.go: the clauses of "where" and "mutations".
//   - committing.go: the checks at the end of a transaction, and its changes.
//   - refs.go: references between rows, and deletion of rows without references.
//   - uniqueness.go: indexes that no two rows may share.
//   - logrecords.go: rows from the log's records, and records from rows.
//   - tx.go: a transaction in progress: rows beside those of the database.
//   - following.go: a database whose rows another server has.
//   - database.go: the rows, and the observers of their changes.
//   - row.go: a row, and its columns as Go values.
//   - logfile.go: the file that transactions are appended to.
//
// Invariants:
//
//  1. A row never changes: a transaction makes a new one. So observers and readers may keep rows
//     without a copy.
//  2. Only the Tx changes before all checks of the commit have passed and the log has the record.
//     So an abort at any place only drops the Tx.
//  3. The database's lock is held from a transaction's first operation until the last observer
//     has seen the change. All see the same order.
//  4. After each commit every strong reference has its row, and each row of a table that is not
//     a root is referred to.
package store
