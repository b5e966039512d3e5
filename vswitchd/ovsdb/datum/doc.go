// Package datum has the values of OVSDB's columns (RFC 7047 section 5.1). They are atoms, and sets
// and maps of them. It also has the types that constrain them, and their JSON.
//
//   - ovsdberror.go: errors for OVSDB's clients.
//   - atom.go: an integer, a boolean, a string or a UUID.
//   - type.go: which atoms, and how many, a column may hold.
//   - datum.go: a sorted set or map of atoms.
//   - datumjson.go: data as JSON, in both directions.
//   - difference.go: the difference of two data, as update2 and the log carry it.
//
// The schemas that antrail serves have no real numbers and no limits of a string's length, so
// neither exists here. Data are immutable: a change makes a new datum.
package datum
