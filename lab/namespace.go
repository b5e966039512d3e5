package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/antrail/antrail/internal/nsthread"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// netnsDir is where ip(8) and nsenter(1) find named network namespaces.
const netnsDir = "/run/netns"

// Namespace is a network namespace by its name under /run/netns. It is an attribute of a
// thread; see Do.
type Namespace string

// Path is its file, for nsenter --net=.
func (n Namespace) Path() string { return filepath.Join(netnsDir, string(n)) }

// Do runs f on the calling goroutine, inside the namespace. Sockets that f opens and
// processes that f starts stay in the namespace. Goroutines that f starts do not.
func (n Namespace) Do(f func() error) error {
	ns, err := netns.GetFromPath(n.Path())
	if err != nil {
		return fmt.Errorf("namespace %s: %w", n, err)
	}
	defer ns.Close()
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(ns), &fs); err != nil {
		return fmt.Errorf("namespace %s: %w", n, err)
	}
	if fs.Type != unix.NSFS_MAGIC {
		return fmt.Errorf("namespace %s: no namespace is mounted at %s; is %s mounted over itself? Try umount %s", n, n.Path(), netnsDir, netnsDir)
	}
	return nsthread.In(ns, f)
}

// quiet are sysctls for all new links of a namespace. IPv6 is on, whatever the machine's
// own namespace has. There are no router solicitations and advertisements. Link-local
// addresses follow from MAC addresses, because table SpoofGuard allows only those.
var quiet = map[string]string{"disable_ipv6": "0", "accept_ra": "0", "router_solicitations": "0", "addr_gen_mode": "0"}

// create makes the namespace, with lo up.
func (n Namespace) create() error {
	err := nsthread.Away(func() error {
		ns, err := netns.NewNamed(string(n))
		if err != nil {
			return err
		}
		return ns.Close()
	})
	if err != nil {
		return fmt.Errorf("make namespace %s: %w", n, err)
	}
	return n.Do(func() error {
		for name, value := range quiet {
			if err := os.WriteFile("/proc/sys/net/ipv6/conf/default/"+name, []byte(value), 0o644); err != nil {
				return err
			}
		}
		return setUp("lo")
	})
}

// remove deletes the name. The namespace ends when nothing holds it. If there is no
// namespace, that is not an error.
func (n Namespace) remove() error {
	if err := unmountAll(n.Path()); err != nil {
		return fmt.Errorf("unmount namespace %s: %w", n, err)
	}
	err := os.Remove(n.Path())
	if errors.Is(err, unix.EBUSY) {
		err = removeBelow(netnsDir, n.Path())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove namespace %s: %w", n, err)
	}
	return nil
}

// inode identifies the namespace, as in /proc/PID/ns/net; 0 if it does not exist.
func (n Namespace) inode() uint64 {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if unix.Stat(n.Path(), &st) != nil || unix.Statfs(n.Path(), &fs) != nil {
		return 0
	}
	if fs.Type != unix.NSFS_MAGIC {
		return hiddenInode(n.Path())
	}
	return st.Ino
}

// namespaces are the namespaces whose names begin with prefix.
func namespaces(prefix string) ([]Namespace, error) {
	files, err := os.ReadDir(netnsDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var all []Namespace
	for _, f := range files {
		if strings.HasPrefix(f.Name(), prefix) {
			all = append(all, Namespace(f.Name()))
		}
	}
	return all, err
}
