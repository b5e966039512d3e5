package vswitchd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"github.com/antrail/antrail/dataplane/l2"
	"github.com/antrail/antrail/dataplane/telemetry"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/ports/ways"
	"github.com/antrail/antrail/switchd"
	"github.com/antrail/antrail/vswitchd/bridge"
)

// AddPort implements bridge.Switch. A port that the switch already has stays, because the switch
// continues when this process ends.
func (b *bridges) AddPort(br string, p bridge.Port) error {
	spec, err := specOf(&p)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil || b.current.Name != br {
		return fmt.Errorf("there is no bridge %s", br)
	}
	if had := b.portStats(spec.No); had == nil || had.Name != p.Name {
		err = b.openPort(spec)
	} else {
		err = b.client.SecurePort(spec.No, spec.Security) // its VLANs may have changed
	}
	if err == nil {
		b.portChanged(p)
	}
	return err
}

// portChanged updates the settings that depend on a new or changed port. b.mu is held.
func (b *bridges) portChanged(p bridge.Port) {
	b.ports[p.Name] = p
	b.updateMarksFor(&p)
	b.tunnelChanged(&p)
	b.watchPorts()
}

// watchPorts notifies controllers of changed ports.
func (b *bridges) watchPorts() {
	if s := b.server.Load(); s != nil {
		s.WatchPorts()
	}
}

// deviceOwner owns the devices of internal ports. They outlive the switch, as those of Open
// vSwitch's kernel datapath do, so a Node's gateway keeps its addresses.
const deviceOwner = "antrail vswitchd"

func (b *bridges) openPort(spec *door.PortSpec) error {
	return (&switchd.Giver{Switch: b.client, Owner: deviceOwner, Log: b.log}).OpenIn(spec)
}

// ChangePort implements bridge.Switch. A port with another address, MTU or options is opened
// again. The device of an internal port stays.
func (b *bridges) ChangePort(_ string, p bridge.Port) error {
	spec, err := specOf(&p)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if had := b.ports[p.Name]; had.MAC == p.MAC && had.MTU == p.MTU && maps.Equal(had.Options, p.Options) {
		err = b.client.SecurePort(spec.No, spec.Security)
	} else if err = b.closeIfConfined(&p); err == nil {
		err = b.openPort(spec)
	}
	if err == nil {
		b.portChanged(p)
	}
	return err
}

// runRestore gives a new switch process the state of the one that was killed. If that fails, the
// bridge begins without entries, and its controllers have to connect again, as after a kill of
// Open vSwitch.
func (b *bridges) runRestore(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	again, err := b.changes.replay(ctx)
	if again && err != nil && b.current != nil {
		b.log.Warn("the switch was killed, and its last entries are lost: controllers have to send them again", "error", err)
		b.disconnect()
		err = errors.Join(b.changes.Apply(&flow.Bundle{Replace: true, Names: flow.NewNames()}), b.serveBridge(*b.current))
	}
	if err == nil && again {
		err = b.restorePorts()
	}
	if s := b.server.Load(); s != nil {
		err = errors.Join(err, s.RestorePorts())
	}
	if err != nil {
		b.log.Warn("the new switch has not the state of the previous one", "error", err)
	}
	clear(b.receivers.sent)
	b.receivers.update(b.tunnels())
}

// tunnelChanged sets the addresses at which the tunnel of a new or changed port receives.
// b.mu is held.
func (b *bridges) tunnelChanged(p *bridge.Port) {
	if slices.Contains(tunnelTypes, p.Type) {
		delete(b.receivers.sent, doorNumber(p))
		b.receivers.update(b.tunnels())
	}
}

// tunnels are the tunnels of the bridge, by their port numbers. b.mu is held.
func (b *bridges) tunnels() map[uint32]tunnelPort {
	all := map[uint32]tunnelPort{}
	for _, p := range b.ports {
		if spec, err := specOf(&p); err == nil && spec.Tunnel != nil {
			all[spec.No] = tunnelPort{spec.Tunnel, p.Options["local_ip"] == ""}
		}
	}
	return all
}

// followAddresses updates the tunnels when the addresses of the Node change, until ctx ends.
func (b *bridges) followAddresses(ctx context.Context) error {
	f, err := ways.FollowAddresses(func(bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.receivers.update(b.tunnels())
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, f.Close)
	return nil
}

// restorePorts opens the ports of the bridge in a new switch process, and removes all others: the
// switch's file may lack the last changes. b.mu is held.
func (b *bridges) restorePorts() error {
	var errs []error
	wanted := map[uint32]string{}
	for name, p := range b.ports {
		wanted[doorNumber(&p)] = name
	}
	had := map[uint32]string{}
	for _, p := range b.client.Ports() {
		if had[p.No] = p.Name; wanted[p.No] != p.Name {
			errs = append(errs, b.client.RemovePort(p.No))
		}
	}
	for no, name := range wanted {
		p := b.ports[name]
		spec, err := specOf(&p)
		switch {
		case err != nil:
		case had[no] == name:
			err = b.client.SecurePort(no, spec.Security)
		default:
			err = b.openPort(spec)
		}
		errs = append(errs, err)
	}
	b.updateMarks()
	return errors.Join(errs...)
}

// closeIfConfined closes a port of a confined switch, because this process opens the device again.
// A switch that is not confined closes and opens it by itself.
func (b *bridges) closeIfConfined(p *bridge.Port) error {
	info, err := b.client.Info(context.Background())
	if err != nil || !info.Confined {
		return err
	}
	return b.client.RemovePort(doorNumber(p))
}

// RemovePort implements bridge.Switch.
func (b *bridges) RemovePort(_, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.removePort(name)
}

// removePort closes a port. It undoes the changes of the link that a confined switch may not undo.
func (b *bridges) removePort(name string) error {
	p, is := b.ports[name]
	if !is {
		return nil
	}
	delete(b.ports, name)
	defer b.watchPorts()
	defer b.updateMarksFor(&p)
	defer b.tunnelChanged(&p)
	no := doorNumber(&p)
	if s := b.server.Load(); s != nil {
		s.ForgetPort(no)
	}
	had := b.portStats(no)
	if had == nil {
		return nil
	}
	err := b.client.RemovePort(no)
	info, infoErr := b.client.Info(context.Background())
	if infoErr != nil || !info.Confined {
		return errors.Join(err, infoErr)
	}
	return errors.Join(err, switchd.TakeBack(had.Name, had.Driver, deviceOwner))
}

// doorNumber is a port's number at the door.
func doorNumber(p *bridge.Port) uint32 {
	if p.Number == bridge.LocalPort {
		return flow.PortLocal
	}
	return uint32(p.Number)
}

// specOf is the spec of a port at the door. The error is for settings that are not supported.
func specOf(p *bridge.Port) (*door.PortSpec, error) {
	spec := &door.PortSpec{No: doorNumber(p), Name: p.Name, Link: p.Name, Driver: door.DriverAuto}
	var err error
	spec.Security, err = vlansOf(p)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(tunnelTypes, p.Type):
		t, err := tunnelSpec(p)
		spec.Driver, spec.Link, spec.Tunnel = door.DriverTunnel, "", t
		return spec, err
	case len(p.Options) > 0:
		return nil, fmt.Errorf("options are not supported for type %s", cmp.Or(p.Type, "system"))
	}
	switch p.Type {
	case "", "system":
		if p.MAC != "" || p.MTU != 0 {
			return nil, errors.New("mac and mtu_request are not supported for a link that exists already")
		}
	case "internal", "tap":
		spec.Driver, spec.Tap = door.DriverTap, &door.TapSpec{MAC: p.MAC, MTU: p.MTU, Marks: true, Owner: deviceOwner}
	default:
		return nil, fmt.Errorf("type %s is not supported", p.Type)
	}
	return spec, nil
}

// vlansOf are the VLANs of a port for NORMAL. The columns mean the same as in Open vSwitch: a trunk
// ignores tag, and an access port ignores trunks.
func vlansOf(p *bridge.Port) (s l2.PortSecurity, err error) {
	s.VLANMode = l2.VLANMode(p.VLANMode)
	if p.Tag >= 0 && s.VLANMode == "" {
		s.VLANMode = l2.VLANAccess
	}
	if p.Tag > 0 && s.VLANMode != l2.VLANTrunk {
		s.VLAN = uint16(p.Tag)
	}
	for _, vlan := range p.Trunks {
		if s.VLANMode != l2.VLANAccess {
			s.Trunks = append(s.Trunks, uint16(vlan))
		}
	}
	return s, s.Check()
}

// portStats are the counters and state of the switch's port; nil if it has none of the number.
func (b *bridges) portStats(no uint32) *telemetry.PortStats {
	for _, p := range b.client.Ports() {
		if p.No == no {
			return &p
		}
	}
	return nil
}

// PortState implements bridge.Switch.
func (b *bridges) PortState(_, name string) bridge.PortState {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, is := b.ports[name]; is {
		if s := b.portStats(doorNumber(&p)); s != nil {
			return stateOf(s)
		}
	}
	return bridge.PortState{}
}

// stateOf is the state of a port for the columns of its row.
func stateOf(s *telemetry.PortStats) bridge.PortState {
	state := bridge.PortState{
		MAC: s.MAC.String(), MTU: s.MTU, AdminUp: s.Up, LinkUp: s.Up,
		Statistics: map[string]int64{
			"rx_packets": int64(s.RxPackets), "rx_bytes": int64(s.RxBytes), "rx_dropped": int64(s.RxDropped), "rx_errors": int64(s.RxErrors),
			"tx_packets": int64(s.TxPackets), "tx_bytes": int64(s.TxBytes), "tx_dropped": int64(s.TxDropped), "tx_errors": int64(s.TxErrors),
		},
		Status: map[string]string{"driver_name": s.Driver},
	}
	if link, err := net.InterfaceByName(s.Name); err == nil {
		state.IfIndex = link.Index
	}
	return state
}
