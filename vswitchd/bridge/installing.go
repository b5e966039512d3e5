package bridge

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// installed is a bridge of the switch, with its ports.
type installed struct {
	Bridge
	ports map[string]Port // by name
}

// install changes the switch to the wanted bridges and ports. It sets err of refused ports.
func (r *Reconciler) install(w *wanted) {
	r.removeBridges(w)
	taken := map[string]bool{} // names of interfaces
	kept := map[string]bool{}  // keys of logged
	for _, b := range w.bridges {
		kept[b.Name+"/"] = true
		for _, p := range b.ports {
			if taken[p.Name] && p.err == nil {
				p.err = fmt.Errorf("interface %s belongs to several ports", p.Name)
			}
			taken[p.Name], kept[b.Name+"/"+p.Name] = true, true
		}
		r.installBridge(b)
	}
	maps.DeleteFunc(r.logged, func(key, _ string) bool { return !kept[key] })
}

// removeBridges removes bridges without a row, and those whose datapath type changed.
func (r *Reconciler) removeBridges(w *wanted) {
	for _, name := range slices.Sorted(maps.Keys(r.bridges)) {
		now := r.bridges[name]
		if slices.ContainsFunc(w.bridges, func(b *wantedBridge) bool { return b.Name == name && b.DatapathType == now.DatapathType }) {
			continue
		}
		if err := r.sw.RemoveBridge(name); err != nil {
			r.log.Error("a bridge was not removed", "bridge", name, "err", err)
			continue
		}
		delete(r.bridges, name)
	}
}

// installBridge adds or changes a bridge and its ports. If the switch refuses the bridge, its ports
// get the error.
func (r *Reconciler) installBridge(b *wantedBridge) {
	if err := r.installSettings(b); err != nil {
		r.logOnce("a bridge is refused", b.Name, "", err)
		for _, p := range b.ports {
			p.err = fmt.Errorf("bridge %s: %w", b.Name, err)
		}
		return
	}
	r.logOnce("", b.Name, "", nil)
	now := r.bridges[b.Name]
	assignNumbers(now.ports, withoutFault(b.ports))
	r.removePorts(b, now)
	for _, p := range b.ports {
		if p.err == nil {
			p.err = r.installPort(b, now, p)
		}
		r.logOnce("a port is refused", b.Name, p.Name, p.err)
	}
}

// logOnce logs the error of a bridge or port, unless the last one was the same. With a nil error it
// only resets that.
func (r *Reconciler) logOnce(what, of, port string, err error) {
	key := of + "/" + port
	if err == nil {
		delete(r.logged, key)
		return
	}
	if r.logged[key] != err.Error() {
		r.logged[key] = err.Error()
		r.log.Warn(what, "bridge", of, "port", port, "err", err)
	}
}

// withoutFault are the ports without an error, which need a number.
func withoutFault(ports []*wantedPort) []*wantedPort {
	return slices.DeleteFunc(slices.Clone(ports), func(p *wantedPort) bool { return p.err != nil })
}

func (r *Reconciler) installSettings(b *wantedBridge) error {
	if types := r.facts.DatapathTypes; !slices.Contains(types, b.DatapathType) && b.DatapathType != "system" {
		return fmt.Errorf("there is no datapath type %q: %s are known", b.DatapathType, strings.Join(types, ", "))
	}
	now := r.bridges[b.Name]
	switch {
	case now == nil:
		if err := r.sw.AddBridge(b.Bridge); err != nil {
			return err
		}
		r.bridges[b.Name] = &installed{b.Bridge, map[string]Port{}}
	case !reflect.DeepEqual(now.Bridge, b.Bridge):
		if err := r.sw.ChangeBridge(b.Bridge); err != nil {
			return err
		}
		now.Bridge = b.Bridge
	}
	return nil
}

// removePorts removes ports without a row, and those that must be made again because their type or
// number changed. It removes them in the order of their names.
func (r *Reconciler) removePorts(b *wantedBridge, now *installed) {
	for _, name := range slices.Sorted(maps.Keys(now.ports)) {
		p := now.ports[name]
		stays := slices.ContainsFunc(b.ports, func(w *wantedPort) bool {
			return w.Name == name && w.err == nil && w.Type == p.Type && w.Number == p.Number
		})
		if stays {
			continue
		}
		if err := r.sw.RemovePort(b.Name, name); err != nil {
			r.log.Error("a port was not removed", "bridge", b.Name, "port", name, "err", err)
		}
		delete(now.ports, name)
	}
}

func (r *Reconciler) installPort(b *wantedBridge, now *installed, p *wantedPort) error {
	if p.Number == 0 {
		return fmt.Errorf("bridge %s has no port number left", b.Name)
	}
	if types := r.facts.InterfaceTypes; !slices.Contains(types, p.Type) {
		return fmt.Errorf("there is no interface type %q: %s are known", p.Type, strings.Join(types, ", "))
	}
	old, there := now.ports[p.Name]
	var err error
	switch {
	case !there:
		err = r.sw.AddPort(b.Name, p.Port)
	case !reflect.DeepEqual(old, p.Port):
		err = r.sw.ChangePort(b.Name, p.Port)
	}
	if err == nil {
		now.ports[p.Name] = p.Port
	}
	return err
}
