// Package listing selects, sorts and prints the objects that `antrail get` shows, in the
// manner of kubectl. It knows no kind of object: an agent gives columns and objects (api.Listing).
//
//	printchanges.go the objects once, and again when they change
//	choose.go   names, namespaces, labels and the order
//	print.go    the forms: columns, names, JSON, YAML, JSONPath
//	listing.go  what a person asked for: names, order, form
//	widths.go   columns of a table whose lines are not known beforehand
package listing
