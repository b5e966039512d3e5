package schema

// mirrorTable is a mirror: its sources and its output.
func mirrorTable() *Table {
	return table("Mirror",
		one("name", text),
		one("select_all", flag),
		many("select_src_port", weak("Port")),
		many("select_dst_port", weak("Port")),
		upTo(4096, "select_vlan", between(0, 4095)),
		maybe("output_port", weak("Port")),
		maybe("output_vlan", between(1, 4095)),
		maybe("snaplen", between(14, 65535)),
		ephemeral(mapping("statistics", text, number)),
		maybe("filter", text),
		words("external_ids"),
	)
}

// netFlowTable is an export of flows.
func netFlowTable() *Table {
	return table("NetFlow",
		some("targets", text),
		maybe("engine_type", between(0, 255)),
		maybe("engine_id", between(0, 255)),
		one("add_id_to_interface", flag),
		one("active_timeout", atLeast(-1)),
		words("external_ids"),
	)
}

// sFlowTable is an export of samples.
func sFlowTable() *Table {
	return table("sFlow",
		some("targets", text),
		maybe("sampling", number),
		maybe("polling", number),
		maybe("header", number),
		maybe("agent", text),
		words("external_ids"),
	)
}

// ipfixTable is an export of flows and samples.
func ipfixTable() *Table {
	return table("IPFIX",
		many("targets", text),
		maybe("sampling", between(1, most32)),
		maybe("obs_domain_id", between(0, most32)),
		maybe("obs_point_id", between(0, most32)),
		maybe("cache_active_timeout", between(0, 4200)),
		maybe("cache_max_flows", between(0, most32)),
		maybe("stats_interval", between(1, 3600)),
		maybe("template_interval", between(1, 3600)),
		words("other_config"),
		words("external_ids"),
	)
}

// flowSampleCollectorSetTable is where the action sample exports to.
func flowSampleCollectorSetTable() *Table {
	return unique(root(table("Flow_Sample_Collector_Set",
		one("id", between(0, most32)),
		one("bridge", strong("Bridge")),
		maybe("ipfix", strong("IPFIX")),
		maybe("local_group_id", between(0, most32)),
		words("external_ids"),
	)), "id", "bridge")
}
