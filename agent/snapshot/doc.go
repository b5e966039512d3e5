// Package snapshot is the flow snapshot of a switch: entries, groups, meters and what
// packets learned, as text in a file. An agent that starts forwards by the snapshot of
// the agent before, until it has heard of the objects.
//
//	snapshot.go  the text, written and parsed
//	fill.go      from a switch
//	readsnapshot.go the file, and why it is not believed
package snapshot
