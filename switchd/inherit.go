package switchd

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// Inheritance is the ports that the process before has handed over, as descriptors. A
// port that is opened takes them once. What it has not been given it opens itself. A nil
// Inheritance has nothing.
type Inheritance struct {
	mu    sync.Mutex // ports are opened by several goroutines
	ports map[inherited][]int
	begin []func() error // what ports need before packets move
	after []func() error // and what they need then
	// declined are links whose ports were given in vain.
	declined []string
}

// inherited names a port: its link, and the driver that knows its descriptors.
type inherited struct{ driver, link string }

// ErrDeclined is why a port is not opened yet that the process before is to close.
var ErrDeclined = errors.New("it cannot be taken over")

// Add notes the descriptors of a link's port, which belong to the Inheritance from then
// on.
func (i *Inheritance) Add(driver, link string, fds []int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ports == nil {
		i.ports = map[inherited][]int{}
	}
	i.ports[inherited{driver, link}] = fds
}

// TakeDescriptors is a port's descriptors, once; nil if the port has to be opened.
func (i *Inheritance) TakeDescriptors(driver, link string) []int {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	which := inherited{driver, link}
	fds := i.ports[which]
	delete(i.ports, which)
	return fds
}

// Has reports whether a link's port was given and nobody has taken it.
func (i *Inheritance) Has(link string) bool { return i.driverOf(link) != "" }

// driverOf is the driver of such a port; "" if there is none.
func (i *Inheritance) driverOf(link string) string {
	if i == nil {
		return ""
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for which := range i.ports {
		if which.link == link {
			return which.driver
		}
	}
	return ""
}

// goesOn notes a port on AF_XDP that was taken over.
func (i *Inheritance) goesOn(p interface {
	BeginTraffic() error
	Relink() error
}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begin, i.after = append(i.begin, p.BeginTraffic), append(i.after, p.Relink)
}

// decline says that a port cannot be taken over, and is opened when the process before
// has closed it.
func (i *Inheritance) decline(link string, why error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.declined = append(i.declined, link)
	return fmt.Errorf("%w: %w", ErrDeclined, why)
}

// Declined are the links whose ports cannot be taken over.
func (i *Inheritance) Declined() []string { return i.declined }

// OnBegin has BeginTraffic call a function too.
func (i *Inheritance) OnBegin(f func() error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begin = append(i.begin, f)
}

// BeginTraffic does what the ports need before packets move, when the process before moves none.
func (i *Inheritance) BeginTraffic() error {
	var err error
	for _, begin := range i.begin {
		err = errors.Join(err, begin())
	}
	return err
}

// After does what the ports need when packets move again; the errors are of ports that go
// on as they were.
func (i *Inheritance) After() (errs []error) {
	for _, after := range i.after {
		if err := after(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Close closes the descriptors that nobody has taken.
func (i *Inheritance) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for which, fds := range i.ports {
		for _, fd := range fds {
			os.NewFile(uintptr(fd), "").Close()
		}
		delete(i.ports, which)
	}
}

// adoptOr makes a port of descriptors, or opens it when there are none.
func adoptOr[Options, Port any](fds []int, o Options, adopt func(Options, []int) (Port, error), open func(Options) (Port, error)) (Port, error) {
	if fds == nil {
		return open(o)
	}
	return adopt(o, fds)
}
