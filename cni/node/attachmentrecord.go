package node

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
	"sync"

	"github.com/antrail/antrail/cni"
	"github.com/containernetworking/cni/pkg/types"
)

// The record says which attachment has which address, link and port. An attachment is
// written before anything of it is made, and removed after all of it is gone. So after a
// kill the record has everything that may exist, and no address is given out twice.
//
// The file lies beside the agent's socket: it must outlive the agent, but not a reboot.
// Sandboxes, links and addresses end with a reboot, too. A record of another boot counts as
// empty.

// attachment is the state of one interface of one sandbox. It is a value: changes replace
// it in the record and never write to it.
type attachment struct {
	cni.Attachment
	Netns   string         `json:"netns"`   // the sandbox's file
	NetnsID string         `json:"netnsID"` // device and inode of that file
	Network string         `json:"network"`
	Pod     cni.Pod        `json:"pod"`
	IPs     []netip.Prefix `json:"ips"` // at most one per family
	Routes  []*types.Route `json:"routes,omitempty"`
	MAC     string         `json:"mac"`  // of the sandbox's end
	Link    string         `json:"link"` // the Node's end, and the port's name
	OFPort  uint32         `json:"ofPort"`
	// Table is the routing table of a sandbox's further interface, 0 for the first one.
	Table  int       `json:"table,omitempty"`
	Egress cni.Limit `json:"egress,omitzero"`
	Routed bool      `json:"routed,omitempty"`
	// Serial grows from attachment to attachment.
	Serial uint64 `json:"serial"`
	// Made says that ADD finished.
	Made bool `json:"made,omitempty"`
}

// addrs are the addresses without their prefixes' lengths.
func (a *attachment) addrs() (all []netip.Addr) {
	for _, p := range a.IPs {
		all = append(all, p.Addr())
	}
	return all
}

// content is the file, as JSON.
type content struct {
	Boot        string       `json:"boot"`
	Serial      uint64       `json:"serial"`   // the last one given
	LastPort    uint32       `json:"lastPort"` // likewise
	LastIPs     []netip.Addr `json:"lastIPs"`  // likewise, by family
	Attachments []attachment `json:"attachments"`
}

// record is the content and its file. Several goroutines may use it.
type record struct {
	path string
	mu   sync.Mutex
	now  content
}

const bootID = "/proc/sys/kernel/random/boot_id"

// maxRecord bounds the file, in bytes. An attachment takes less than a kilobyte.
const maxRecord = 64 << 20

// openRecord reads the file. If there is no file, the record is empty. If the file cannot
// be read, that is an error: without the record, addresses would be given twice.
func openRecord(path string) (*record, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return nil, err
	}
	r := &record{path: path, now: content{Boot: strings.TrimSpace(string(boot))}}
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil && st.Size() > maxRecord {
		err = fmt.Errorf("%s: it has %d bytes, at most %d were expected", path, st.Size(), maxRecord)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	was, err := parseContent(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it records which pod has which address: remove it only if no pod runs", path, err)
	}
	if was.Boot == r.now.Boot {
		r.now = *was
	}
	return r, nil
}

// parseContent reads and checks a file's text.
func parseContent(text []byte) (*content, error) {
	c := &content{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, err
	}
	ips, names, ports := map[netip.Addr]bool{}, map[string]bool{}, map[uint32]bool{}
	for i := range c.Attachments {
		a := &c.Attachments[i]
		err := a.check()
		switch {
		case err != nil:
		case c.at(a.Attachment) != i:
			err = fmt.Errorf("interface %s of sandbox %s is listed twice", a.Interface, a.Container)
		case names[a.Link]:
			err = fmt.Errorf("link %s is listed twice", a.Link)
		case ports[a.OFPort]:
			err = fmt.Errorf("port %d is listed twice", a.OFPort)
		}
		if err != nil {
			return nil, fmt.Errorf("attachments[%d]: %w", i, err)
		}
		names[a.Link], ports[a.OFPort] = true, true
		for _, ip := range a.IPs {
			if ips[ip.Addr()] {
				return nil, fmt.Errorf("attachments[%d]: %v is listed twice", i, ip)
			}
			ips[ip.Addr()] = true
		}
	}
	return c, nil
}

// check says what is wrong with an attachment of a file, apart from the other attachments.
func (a *attachment) check() error {
	switch {
	case a.Container == "" || a.Interface == "" || a.Netns == "":
		return errors.New("no sandbox or interface")
	case a.Link == "" || len(a.Link) > maxName || strings.ContainsAny(a.Link, "/ "):
		return fmt.Errorf("%q is not a link name", a.Link)
	case a.OFPort < firstPort || a.OFPort > lastPort:
		return fmt.Errorf("port %d is not in %d-%d, the numbers of pods' ports", a.OFPort, firstPort, lastPort)
	case len(a.IPs) == 0 || slices.ContainsFunc(a.IPs, func(ip netip.Prefix) bool { return !ip.IsValid() }):
		return fmt.Errorf("%v are not addresses", a.IPs)
	}
	_, err := parseMAC(a.MAC)
	return err
}

// findAttachment is the attachment of a sandbox's interface, if the record has it.
func (r *record) findAttachment(k cni.Attachment) (attachment, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := r.now.at(k); i >= 0 {
		return r.now.Attachments[i], true
	}
	return attachment{}, false
}

// all are the attachments, oldest first.
func (r *record) all() []attachment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.now.Attachments)
}

func (c *content) at(k cni.Attachment) int {
	return slices.IndexFunc(c.Attachments, func(a attachment) bool { return a.Attachment == k })
}

// change applies f to a copy of the content and writes the file. If either fails, file and
// content stay as they are.
func (r *record) change(f func(*content) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.now
	next.Attachments = slices.Clone(r.now.Attachments)
	next.LastIPs = slices.Clone(r.now.LastIPs)
	if err := f(&next); err != nil {
		return err
	}
	if err := next.save(r.path); err != nil {
		return cni.Errorf(types.ErrIOFailure, "the record of pods' addresses", err)
	}
	r.now = next
	return nil
}

// markMade marks an attachment as made.
func (r *record) markMade(k cni.Attachment) error {
	return r.change(func(c *content) error {
		i := c.at(k)
		if i < 0 {
			return cni.Errorf(types.ErrInternal, "the attachment is gone from the record", nil)
		}
		c.Attachments[i].Made = true
		return nil
	})
}

// removeAttachment removes an attachment from the record.
func (r *record) removeAttachment(k cni.Attachment) error {
	return r.change(func(c *content) error {
		c.Attachments = slices.DeleteFunc(c.Attachments, func(a attachment) bool { return a.Attachment == k })
		return nil
	})
}

// save writes the file and renames it into place. So a reader, and an agent after a kill,
// sees the old file or the new one, never a part.
func (c *content) save(path string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fresh := path + ".new"
	if err := os.WriteFile(fresh, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}
