package testbed

import (
	"runtime"

	"github.com/vishvananda/netns"
)

// InOwnNamespace runs f on a thread of its own in a new network namespace. Thread and namespace end
// with f.
func InOwnNamespace(f func(netns.NsHandle) error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and the namespace with the thread
		ns, err := netns.New()
		if err == nil {
			err = f(ns)
			ns.Close()
		}
		done <- err
	}()
	return <-done
}

// NewNamespace makes a network namespace without a name. It lives until the handle is closed and no
// thread or link uses it.
func NewNamespace() (netns.NsHandle, error) {
	type made struct {
		ns  netns.NsHandle
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread() // for good: no other goroutine gets a thread in this namespace
		ns, err := netns.New()
		done <- made{ns, err}
	}()
	m := <-done
	return m.ns, m.err
}

// Within returns a function that runs another one in a namespace, on a thread that ends with it.
func Within(ns netns.NsHandle) func(func() error) error {
	return func(f func() error) error {
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			err := netns.Set(ns)
			if err == nil {
				err = f()
			}
			done <- err
		}()
		return <-done
	}
}
