// Package parse reads flow entries, groups, meters, matches and actions from the text that
// ovs-ofctl prints and accepts:
//
//	e, err := parse.Entry("table=9,priority=200,ip actions=goto_table:10", names)
//
// A line is cut into items. An item is a setting, a part of the match, or an action:
//
//	scan.go, error.go       a line's items; the errors of a program's files
//	value.go                numbers, ports, tables and their names; memory of a parser
//	match.go                matches
//	set.go, ct.go, learn.go actions that write fields, and those with nested brackets
//	action.go               the other actions
//	entry.go                entries
//	filter.go               filters of a dump
//	group.go, meter.go      groups and meters
//	program.go              a whole pipeline
//
// The parser accepts the text that Open vSwitch 3.1 accepts; the tests compare the two on a
// private switch. It refuses three things that Open vSwitch accepts:
//
//  1. A field whose prerequisite is missing, because Open vSwitch leaves it out silently.
//  2. A field given twice.
//  3. A number with a leading 0, because it would be octal.
//
// Errors are of type *flow.Error and name the column.
package parse
