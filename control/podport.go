package control

import (
	"net/netip"
	"slices"
	"strings"
)

// PodPort is the port that the CNI plugin made for a Pod of this Node. Its key
// is the Pod's, with KindPodPort. No snapshot holds it: the store puts it into
// the Pod, whose addresses it then gives, for a Pod's status has them later, if
// at all.
//
// A Pod may have more interfaces than its first. The port of each further one
// is named for POD@INTERFACE, and its twin is in the snapshot under that name: a
// Pod with all that the Pod says of itself, with port and addresses of its own.
// So what policies say of a Pod holds on all its ports. No Service has a twin as
// its endpoint.
type PodPort struct {
	Meta
	SwitchPort              // Pod is the Pod's name
	IPs        []netip.Addr // at most one per family
	// UID is that of the Pod the port was made for; empty: whichever has the name.
	UID string
}

// KindPodPort is the kind of a PodPort's key.
const KindPodPort Kind = "PodPort"

// NewPodPort makes the object of a port, as the source of that name says it.
func NewPodPort(source string, port SwitchPort, ips []netip.Addr, uid string) *PodPort {
	k := Key{KindPodPort, port.Pod.Namespace, port.Pod.Name}
	return &PodPort{Meta: Meta{Key: k, Source: Source{File: source}}, SwitchPort: port, IPs: ips, UID: uid}
}

// podOf is the key of a port's Pod, or of its twin.
func podOf(k Key) Key { return Key{KindPod, k.Namespace, k.Name} }

// portOfPod is the key of a Pod's port.
func portOfPod(k Key) Key { return Key{KindPodPort, k.Namespace, k.Name} }

// twinMark stands in no name of a Pod.
const twinMark = "@"

// TwinName names a Pod's further interface where a Pod's name stands.
func TwinName(pod, ifname string) string { return pod + twinMark + ifname }

// origin is the key of the Pod that a twin is one of; false for no twin's.
func origin(k Key) (Key, bool) {
	name, _, twin := strings.Cut(k.Name, twinMark)
	return Key{KindPod, k.Namespace, name}, twin && k.Kind == KindPod
}

// noteTwin keeps the twins of each Pod.
func (s *Store) noteTwin(k Key, there bool) {
	pod, twin := origin(podOf(k))
	if !twin || k.Kind != KindPodPort {
		return
	}
	s.twins[pod] = slices.DeleteFunc(s.twins[pod], func(o Key) bool { return o == podOf(k) })
	if there {
		s.twins[pod] = append(s.twins[pod], podOf(k))
	} else if len(s.twins[pod]) == 0 {
		delete(s.twins, pod)
	}
}

// twin is the twin of a key: its Pod with the port that is the key's; nil when
// there is no such Pod or port.
func (s *Store) twin(k, podKey Key) Object {
	if len(s.claims[portOfPod(k)]) == 0 || len(s.claims[podKey]) == 0 {
		return nil
	}
	pod, ok := s.claims[podKey][0].(*Pod)
	if !ok {
		return nil
	}
	twin := *pod
	twin.Key = k
	attached := s.attach(&twin)
	if attached == &twin { // the port is not this Pod's
		return nil
	}
	return attached
}

// attach is a Pod with its port, if there is one that was made for it: one of
// the same name that came after another has another UID.
func (s *Store) attach(pod *Pod) *Pod {
	k := portOfPod(pod.Key)
	if len(s.claims[k]) == 0 {
		return pod
	}
	port, ok := s.claims[k][0].(*PodPort)
	if !ok || pod.HostNetwork || port.UID != "" && pod.UID != "" && port.UID != pod.UID {
		return pod
	}
	attached := *pod
	attached.SwitchPort = port.SwitchPort
	attached.IPs = slices.Clone(port.IPs)
	return &attached
}

// InForce is nil when the switch has the entries of a Pod behind a port and
// those of all policies that apply to it, or what is in the way. A Pod's entries
// never go in before its policies (phaseOf).
func (r *Reconciler) InForce(port SwitchPort) error {
	k := Key{KindPod, port.Pod.Namespace, port.Pod.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.view == nil:
		return NotInForce("the Node's objects are not known yet")
	case r.view.here[k] == nil:
		return NotInForce("no Pod of that name is known on this Node yet")
	case r.view.ports[port.Pod] != port:
		return NotInForce("the port is not that of the Pod that is known")
	}
	if s, _ := r.status(k); s.State != Installed {
		return NotInForce(s.Reason)
	}
	for part := range r.waiting {
		if part.Object == k {
			return NotInForce("its entries are not in the switch yet")
		}
	}
	return nil
}

// NotInForce says what keeps a Pod's port from being opened.
type NotInForce string

// Error is the reason.
func (n NotInForce) Error() string { return string(n) }
