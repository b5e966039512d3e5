package manifest

import (
	"maps"
	"slices"
	"strings"

	"github.com/antrail/antrail/flow"
	"github.com/antrail/antrail/tables"
)

// Feature gates. spec.features of a NodeConfig and kubernetes.features of an agent's configuration
// accept only the names of Antrea's gates. A gate without effect here is an error, because the
// operator that sets it expects one.

// gateKind is the effect of one of Antrea's feature gates here.
type gateKind uint8

const (
	gateSwitches gateKind = iota + 1 // turns something on and off (tableFeatures)
	gateAlwaysOn                     // its feature is always on
	gateNotBuilt                     // its feature does not exist
)

// featureGates are the gates of Antrea v1.15 to v2.7 (pkg/features/antrea_features.go), and the two
// that set all gates of a stage.
var featureGates = map[string]gateKind{
	"AntreaIPAM":           gateSwitches,
	"AntreaPolicy":         gateSwitches,
	"AntreaProxy":          gateSwitches,
	"Egress":               gateSwitches,
	"EgressTrafficShaping": gateSwitches,
	"ExternalNode":         gateSwitches,
	"L7NetworkPolicy":      gateSwitches,
	"LoadBalancerModeDSR":  gateSwitches,
	"Multicast":            gateSwitches,
	"TrafficControl":       gateSwitches,

	"EndpointSlice":                 gateAlwaysOn,
	"NFTablesHostNetworkMode":       gateAlwaysOn,
	"NetworkPolicyStats":            gateAlwaysOn, // get policies, and the metrics of policies
	"PreferSameTrafficDistribution": gateAlwaysOn,
	"ServiceTrafficDistribution":    gateAlwaysOn,
	"TopologyAwareHints":            gateAlwaysOn,
	"Traceflow":                     gateAlwaysOn,

	"AdminNetworkPolicy":          gateNotBuilt,
	"AllAlpha":                    gateNotBuilt,
	"AllBeta":                     gateNotBuilt,
	"AntreaNodeConfig":            gateNotBuilt,
	"BGPPolicy":                   gateNotBuilt,
	"CleanupStaleUDPSvcConntrack": gateNotBuilt,
	"ClusterNetworkPolicy":        gateNotBuilt, // that of policy.networking.k8s.io
	"EgressSeparateSubnet":        gateNotBuilt,
	"FlowExporter":                gateNotBuilt,
	"IPsecCertAuth":               gateNotBuilt,
	"L7FlowExporter":              gateNotBuilt,
	"Multicluster":                gateNotBuilt,
	"NodeIPAM":                    gateNotBuilt,
	"NodeLatencyMonitor":          gateNotBuilt,
	"NodeNetworkPolicy":           gateNotBuilt,
	"NodePortLocal":               gateNotBuilt,
	"PacketCapture":               gateNotBuilt,
	"SecondaryNetwork":            gateNotBuilt,
	"ServiceExternalIP":           gateNotBuilt,
	"SupportBundleCollection":     gateNotBuilt,
}

// switchingGates returns the gates that turn something on and off, in order.
func switchingGates() []string {
	var names []string
	for name, kind := range featureGates {
		if kind == gateSwitches {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// FeatureFault is the fault of a feature gate with a value; "" if there is none. The gate of a
// missing feature may be false, and that of an always-on feature may be true.
func FeatureFault(name string, on bool) string {
	switch kind := featureGates[name]; {
	case kind == gateAlwaysOn && !on:
		return "antrail has no switch for this feature of Antrea: it is always on; remove the gate"
	case kind == gateNotBuilt && on:
		return "antrail does not have this feature of Antrea; remove the gate, or set it to false"
	case kind == 0:
		meant := flow.Suggest(name, slices.Collect(maps.Keys(featureGates)))
		if meant == "" {
			meant = "; antrail has " + strings.Join(switchingGates(), ", ")
		}
		return "there is no such feature gate" + meant
	}
	return ""
}

// DSRFault is the fault of a default load balancer mode; "" if there is none. Mode dsr needs the gate
// LoadBalancerModeDSR, as in Antrea. Without it, all Services would have mode nat.
func DSRFault(mode string, features map[string]bool) string {
	if mode == "dsr" && !features["LoadBalancerModeDSR"] {
		return "mode dsr needs features: {LoadBalancerModeDSR: true}"
	}
	return ""
}

// MulticastFault is the fault of the gate Multicast on a Node; "" if there is none. Packets of groups
// reach other Nodes through the tunnel only.
func MulticastFault(mode tables.EncapMode, features map[string]bool) string {
	if features["Multicast"] && mode != tables.Encap {
		return "needs trafficEncapMode encap: packets of groups go to other Nodes through the tunnel"
	}
	return ""
}

// features checks the feature gates of a NodeConfig.
func (c *check) features(in map[string]bool) map[string]bool {
	at := specAt.Child("features")
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if fault := FeatureFault(name, in[name]); fault != "" {
			c.invalid(at.Key(Clip(name)), in[name], "%s", fault)
		}
	}
	return maps.Clone(in)
}
