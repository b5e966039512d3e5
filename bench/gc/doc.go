// Package gc is profile gc: what Go's garbage collector does to a busy worker with a million
// connections.
//
//	gc.go           the profile
//	turns.go        the worker's turns, with collections and without
//	windowparts.go  undisturbed parts of a window
//	collecting.go   forced collections, and Go's pauses
//	sourceports.go  the worker's ports
package gc
