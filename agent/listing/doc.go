// Package listing selects, sorts and prints the objects that `antrail get` shows, as kubectl
// does. It knows no kind of object: an agent gives columns and objects (api.Listing).
//
//	printchanges.go the objects once, and again when they change
//	choose.go   names, namespaces, labels and the order
//	print.go    the forms: columns, names, JSON, YAML, JSONPath
//	listing.go  the options: names, order, form
//	widths.go   columns of a table whose lines are not known in advance
package listing
