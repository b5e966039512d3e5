// Package nsthread works in other network namespaces. A namespace is an attribute of a thread, so
// work in a namespace happens on the calling goroutine, which keeps its thread meanwhile. A
// socket opened there stays there, and a process started there lives there; a goroutine started
// there does not.
package nsthread

import (
	"runtime"

	"github.com/vishvananda/netns"
)

// Away runs f, which may move the thread to another namespace, and returns the thread to its own.
// If that fails, the thread stays locked to its goroutine and ends with it, so no other goroutine
// runs on it.
func Away(f func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer home.Close()
	defer func() {
		if netns.Set(home) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// In runs f in a namespace.
func In(ns netns.NsHandle, f func() error) error {
	return Away(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		return f()
	})
}
