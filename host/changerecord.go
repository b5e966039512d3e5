package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antrail/antrail/internal/sysctl"
	"github.com/vishvananda/netlink"
)

// The record lists the changes to the Node that outlive the process: original sysctls,
// addresses of Egresses, a card's addresses and routes, files. Each is written before its
// change, so that the record is complete after a kill at any instant. The next Up takes the
// changes over as its own. Clean undoes them without an agent (clean.go).
//
// The record must outlive the process, but not a reboot, which undoes the changes. Of a
// record of another boot, only the files count.

// record is the file's content, as JSON.
type record struct {
	Boot      string    `json:"boot"`
	Sysctls   []changed `json:"sysctls,omitempty"`   // oldest first
	Addresses []placed  `json:"addresses,omitempty"` // likewise
	// Card are addresses and routes of the card that the switch owns (movedcard.go), or
	// nil.
	Card  *movedCard `json:"card,omitempty"`
	Files []string   `json:"files,omitempty"`

	path string // "": not on disk
}

// changed is a sysctl that was set. Set is "" if the kernel changed it along with another
// one.
type changed struct {
	File   string `json:"file"`
	Before string `json:"before"`
	Set    string `json:"set,omitempty"`
}

// placed is an address that was put on a link.
type placed struct {
	Link    string       `json:"link"`
	Address netip.Prefix `json:"address"`
}

const bootID = "/proc/sys/kernel/random/boot_id"

// loadRecord reads a record. If there is no file, or it is of another boot, the record is
// empty. If the file cannot be read, that is an error: nothing else may know the Node's
// original state.
func loadRecord(path string) (*record, error) {
	boot, err := sysctl.Read(bootID)
	if err != nil {
		return nil, err
	}
	r := &record{Boot: boot, path: path}
	if path == "" {
		return r, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w; it lists the changes to the Node: correct it, or remove it to keep those changes", path, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Boot != boot {
		r.Boot, r.Sysctls, r.Addresses, r.Card = boot, nil, nil, nil
	}
	return r, nil
}

// check refuses a record with values that Up never writes.
func (r *record) check() error {
	for _, s := range r.Sysctls {
		if filepath.Clean(s.File) != s.File || !strings.HasPrefix(s.File, "/proc/sys/net/") {
			return fmt.Errorf("%q is not a sysctl below /proc/sys/net/", s.File)
		}
	}
	for _, a := range r.Addresses {
		if !a.Address.IsValid() || a.Link == "" {
			return fmt.Errorf("address %v on link %q: not a valid address, or no link", a.Address, a.Link)
		}
	}
	if r.Card != nil {
		if err := r.Card.check(); err != nil {
			return err
		}
	}
	for _, f := range r.Files {
		if !filepath.IsAbs(f) {
			return fmt.Errorf("%q is not an absolute path", f)
		}
	}
	return nil
}

// save writes the file and renames it into place, so that a reader sees the old file or the
// new one. An empty record is removed.
func (r *record) save() error {
	if r.path == "" {
		return nil
	}
	if len(r.Sysctls)+len(r.Addresses)+len(r.Files) == 0 && r.Card == nil {
		if err := os.Remove(r.path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fresh := r.path + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, r.path)
}

// noteChange writes the record before a change of the Node. change updates the record.
func (r *record) noteChange(change func()) error {
	change()
	if err := r.save(); err != nil {
		return fmt.Errorf("record of changes: %w", err)
	}
	return nil
}

// hasSysctl says whether the record has a sysctl.
func (r *record) hasSysctl(file string) bool {
	return slices.ContainsFunc(r.Sysctls, func(s changed) bool { return s.File == file })
}

// addAddress records an address that is about to be put on a link.
func (r *record) addAddress(p placed) error {
	return r.noteChange(func() {
		if !slices.Contains(r.Addresses, p) {
			r.Addresses = append(r.Addresses, p)
		}
	})
}

// dropAddress removes an address from the record after its removal from the link.
func (r *record) dropAddress(p placed) error {
	return r.noteChange(func() {
		r.Addresses = slices.DeleteFunc(r.Addresses, func(o placed) bool { return o == p })
	})
}

// remove removes the address from its link.
func (p placed) remove() error {
	link, err := netlink.LinkByName(p.Link)
	if err != nil {
		return err
	}
	return netlink.AddrDel(link, &netlink.Addr{IPNet: ipNet(p.Address)})
}

// takeOver makes a killed process's changes this process's own: Down undoes them, and the
// first Set removes addresses that are no longer wanted.
func (h *Host) takeOver() {
	for _, s := range h.record.Sysctls {
		h.undoLater("sysctl "+s.File, func() error { return sysctl.Write(s.File, s.Before) })
	}
	for _, p := range h.record.Addresses {
		h.side = append(h.side, h.placedThing(p))
	}
	if m := h.record.Card; m != nil {
		h.undoLater("move of "+m.Link, h.record.returnCard)
	}
}

// placedThing is an address that is on its link already, by this program.
func (h *Host) placedThing(p placed) thing {
	return thing{
		"address " + p.Address.Addr().String(),
		func() error {
			at, err := netlink.LinkByName(p.Link)
			if err != nil {
				return err
			}
			return h.place(p, at)
		},
		func() error {
			if err := p.remove(); err != nil && !gone(err) {
				return err
			}
			return h.record.dropAddress(p)
		},
		func(k *kernel) bool { return k.hasAddress(nil, p.Address) },
	}
}
