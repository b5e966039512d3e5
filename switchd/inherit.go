package switchd

import (
	"errors"
	"fmt"
	"sync"

	"github.com/antrail/antrail/door"
)

// Inheritance has the ports that the predecessor has handed over, as descriptors. A port takes
// its descriptors once, when it is opened. Without descriptors, it is opened by name.
type Inheritance struct {
	mu    sync.Mutex // several goroutines open ports
	ports map[portKey][]int
	begin []func() error // calls for ports before packets move
	after []func() error // calls for ports after that
	// declined are links whose ports could not be taken over.
	declined []string
}

// portKey identifies a port: its link, and the driver that knows its descriptors.
type portKey struct{ driver, link string }

// ErrDeclined is returned for a port that cannot be opened until the predecessor has closed it.
var ErrDeclined = errors.New("it cannot be taken over")

// Add adds the descriptors of a link's port, which belong to the Inheritance from then on.
func (i *Inheritance) Add(driver, link string, fds []int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ports == nil {
		i.ports = map[portKey][]int{}
	}
	i.ports[portKey{driver, link}] = fds
}

// TakeDescriptors returns a port's descriptors, once; nil if the port must be opened.
func (i *Inheritance) TakeDescriptors(driver, link string) []int {
	if i == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	which := portKey{driver, link}
	fds := i.ports[which]
	delete(i.ports, which)
	return fds
}

// Has reports whether a link's port was given and is not yet taken.
func (i *Inheritance) Has(link string) bool { return i.driverOf(link) != "" }

// driverOf is the driver of a link's port that was given and is not yet taken; "" if there is none.
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

// addXDPPort registers a port on AF_XDP that was taken over.
func (i *Inheritance) addXDPPort(p interface {
	BeginTraffic() error
	Relink() error
}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begin, i.after = append(i.begin, p.BeginTraffic), append(i.after, p.Relink)
}

// decline marks a port that cannot be taken over. It is opened after the predecessor has closed
// it.
func (i *Inheritance) decline(link string, why error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.declined = append(i.declined, link)
	return fmt.Errorf("%w: %w", ErrDeclined, why)
}

// Declined are the links whose ports cannot be taken over.
func (i *Inheritance) Declined() []string { return i.declined }

// OnBegin adds a function that BeginTraffic calls.
func (i *Inheritance) OnBegin(f func() error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.begin = append(i.begin, f)
}

// BeginTraffic prepares the ports before packets move, after the predecessor has stopped.
func (i *Inheritance) BeginTraffic() error {
	var err error
	for _, begin := range i.begin {
		err = errors.Join(err, begin())
	}
	return err
}

// After does the remaining work of ports once packets move again. The errors concern ports that
// continue unchanged.
func (i *Inheritance) After() (errs []error) {
	for _, after := range i.after {
		if err := after(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Close closes the descriptors that were not taken.
func (i *Inheritance) Close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, fds := range i.ports {
		door.CloseDescriptors(fds)
	}
	clear(i.ports)
}

// adoptOr makes a port of descriptors. If there are none, it opens the port.
func adoptOr[Options, Port any](fds []int, o Options, adopt func(Options, []int) (Port, error), open func(Options) (Port, error)) (Port, error) {
	if fds == nil {
		return open(o)
	}
	return adopt(o, fds)
}
