package vswitchd

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/vswitchd/bridge"
	"github.com/antrail/antrail/vswitchd/ofserver"
	"github.com/antrail/antrail/vswitchd/openflow"
)

// bridges implements bridge.Switch by the switch behind the door. A switch has one pipeline, so it
// is one bridge. A second bridge is refused, because a controller may use all 254 tables. So patch
// ports are refused, too (docs/decisions/075-one-bridge.md).
type bridges struct {
	client  *door.Client
	changes *changeRecorder // of client, for all changes of entries
	runDir  string          // of the bridge's socket
	release string
	log     *slog.Logger
	ctx     context.Context // ends with the process
	server  atomic.Pointer[ofserver.Server]
	served  sync.WaitGroup

	mu      sync.Mutex
	current *bridge.Bridge               // nil without one
	stop    context.CancelFunc           // ends the connections of current
	targets map[string]*controllerTarget // of current, by target
	ports   map[string]bridge.Port       // of current, by name

	receivers receivers
}

// failSecure is the fail mode of a bridge that begins without entries. Any other bridge begins with
// one entry that makes it a learning switch, as with Open vSwitch.
const failSecure = "secure"

// Facts implements bridge.Switch. The version is that of the Open vSwitch with whose tools the
// tests compare this process.
func (b *bridges) Facts() bridge.Facts {
	return bridge.Facts{
		Version: "3.1.0", DatapathTypes: []string{"netdev", "system"},
		InterfaceTypes: append([]string{"internal", "system", "tap"}, tunnelTypes...), DatapathVersion: b.release,
	}
}

// AddBridge implements bridge.Switch.
func (b *bridges) AddBridge(br bridge.Bridge) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil && b.current.Name != br.Name {
		return fmt.Errorf("the switch is bridge %s already, and cannot be a second one", b.current.Name)
	}
	return b.serveBridge(br)
}

// ChangeBridge implements bridge.Switch. Controllers stay connected if only FlowRestoreWait
// changes.
func (b *bridges) ChangeBridge(br bridge.Bridge) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil || b.current.Name != br.Name {
		return fmt.Errorf("there is no bridge %s", br.Name)
	}
	if s, same := b.server.Load(), *b.current; s != nil {
		if same.FlowRestoreWait = br.FlowRestoreWait; reflect.DeepEqual(same, br) {
			b.current = &br
			return s.Hold(br.FlowRestoreWait)
		}
	}
	return b.serveBridge(br)
}

// serveBridge serves OpenFlow for a bridge, in place of the current one.
func (b *bridges) serveBridge(br bridge.Bridge) error {
	versions, err := versionsOf(br.Protocols)
	if err != nil {
		return err
	}
	if err := b.installDefaultFlow(&br); err != nil {
		return err
	}
	s, err := ofserver.New(ofserver.Config{
		Switch: b.changes, Bridge: br.Name, DatapathID: br.DatapathID, Release: b.release, Versions: versions, Log: b.log,
	})
	if err != nil {
		return fmt.Errorf("the switch at %s: %w", b.client.Socket(), err)
	}
	if err := s.Hold(br.FlowRestoreWait); err != nil {
		return err
	}
	b.disconnect()
	if err := b.openSockets(s, &br); err != nil {
		b.disconnect()
		return err
	}
	b.current = &br
	b.server.Store(s)
	return nil
}

// installDefaultFlow installs the entry of a new bridge in a switch without a pipeline.
func (b *bridges) installDefaultFlow(br *bridge.Bridge) error {
	if b.client.Names() != nil || br.FailMode == failSecure {
		return nil
	}
	normal := &flow.Entry{Actions: []flow.Action{flow.Output{Port: flow.PortNormal}}}
	return b.changes.Apply(&flow.Bundle{Names: flow.NewNames(), Add: []*flow.Entry{normal}})
}

// disconnect closes the connections and sockets of the bridge.
func (b *bridges) disconnect() {
	if b.stop != nil {
		b.stop()
		b.served.Wait()
		b.stop = nil
	}
	b.server.Store(nil)
}

// RemoveBridge implements bridge.Switch. It removes all entries.
func (b *bridges) RemoveBridge(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil || b.current.Name != name {
		return nil
	}
	b.disconnect()
	var errs []error
	for port := range b.ports {
		errs = append(errs, b.removePort(port))
	}
	b.current = nil
	errs = append(errs, b.changes.Apply(&flow.Bundle{Replace: true, Names: flow.NewNames()}))
	return errors.Join(errs...)
}

// awaitDisconnected returns when no controller is connected. ctx must have ended.
func (b *bridges) awaitDisconnected() { b.served.Wait() }

// versionsOf are the versions that a bridge's protocols name; nil if there are none.
func versionsOf(protocols []string) (all []openflow.Version, err error) {
	for _, name := range protocols {
		i := slices.IndexFunc(openflow.Versions, func(v openflow.Version) bool { return v.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("protocols: %s is not supported", name)
		}
		all = append(all, openflow.Versions[i])
	}
	return all, nil
}

// datapathID is the default datapath ID of a bridge: a locally administered MAC address that the
// name gives.
func datapathID(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	const local, address = 0x020000000000, 0xffffffffffff
	return h.Sum64()&address | local
}
