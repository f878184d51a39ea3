/* Prints where Open MPI's headers put what the bindings use: `struct.field offset`, `struct size`, `NAME value`. */
#include "ompi_config.h"

#include <stddef.h>
#include <stdio.h>

#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/bml/bml.h"
#include "ompi/proc/proc.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/btl.h"

#define FIELD(type, name, field) printf("%s.%s %zu\n", name, #field, offsetof(type, field))
#define SIZE(type, name) printf("%s %zu\n", name, sizeof(type))
#define VALUE(name) printf("%s %ld\n", #name, (long)(name))

int main(void) {
    VALUE(OMPI_MAJOR_VERSION);
    VALUE(OMPI_MINOR_VERSION);
    SIZE(mca_base_component_t, "Component");
    FIELD(mca_base_component_t, "Component", mca_type_name);
    FIELD(mca_base_component_t, "Component", mca_component_name);
    FIELD(mca_base_component_t, "Component", mca_open_component);
    FIELD(mca_base_component_t, "Component", mca_register_component_params);
    SIZE(mca_base_component_data_t, "ComponentData");
    SIZE(mca_bml_base_component_t, "BmlComponent");
    FIELD(mca_bml_base_component_t, "BmlComponent", bml_init);
    SIZE(mca_bml_base_module_t, "BmlModule");
    FIELD(mca_bml_base_module_t, "BmlModule", bml_add_proc);
    FIELD(mca_bml_base_module_t, "BmlModule", bml_add_procs);
    FIELD(mca_bml_base_module_t, "BmlModule", bml_del_procs);
    FIELD(mca_bml_base_module_t, "BmlModule", bml_del_btl);
    FIELD(mca_bml_base_module_t, "BmlModule", bml_del_proc_btl);
    FIELD(mca_bml_base_module_t, "BmlModule", bml_register_error);
    FIELD(mca_bml_base_module_t, "BmlModule", bml_finalize);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_component);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_eager_limit);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_max_send_size);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_exclusivity);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_latency);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_bandwidth);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_alloc);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_free);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_prepare_src);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_send);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_sendi);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_put);
    FIELD(mca_btl_base_module_t, "BtlModule", btl_registration_handle_size);
    SIZE(opal_list_t, "OpalList");
    FIELD(opal_list_t, "OpalList", opal_list_sentinel);
    FIELD(opal_list_item_t, "ListItem", opal_list_next);
    FIELD(opal_class_t, "OpalClass", cls_sizeof);
    FIELD(mca_base_framework_t, "Framework", framework_selection);
    FIELD(mca_btl_base_selected_module_t, "SelectedBtl", btl_module);
    SIZE(mca_btl_base_segment_t, "BtlSegment");
    FIELD(mca_btl_base_segment_t, "BtlSegment", seg_addr);
    FIELD(mca_btl_base_segment_t, "BtlSegment", seg_len);
    FIELD(mca_btl_base_descriptor_t, "Descriptor", des_segments);
    FIELD(mca_btl_base_descriptor_t, "Descriptor", des_segment_count);
    FIELD(mca_btl_base_descriptor_t, "Descriptor", des_cbfunc);
    FIELD(mca_btl_base_descriptor_t, "Descriptor", des_flags);
    SIZE(mca_btl_base_descriptor_t, "Descriptor");
    SIZE(mca_bml_base_endpoint_t, "BmlEndpoint");
#if OMPI_MAJOR_VERSION > 4
    SIZE(mca_btl_base_receive_descriptor_t, "ReceiveDescriptor");
    FIELD(mca_btl_base_receive_descriptor_t, "ReceiveDescriptor", endpoint);
    FIELD(mca_btl_base_receive_descriptor_t, "ReceiveDescriptor", des_segments);
    FIELD(mca_btl_base_receive_descriptor_t, "ReceiveDescriptor", des_segment_count);
    FIELD(mca_btl_base_receive_descriptor_t, "ReceiveDescriptor", tag);
    FIELD(mca_btl_base_receive_descriptor_t, "ReceiveDescriptor", cbdata);
#endif
    SIZE(mca_btl_active_message_callback_t, "Trigger");
    FIELD(mca_btl_active_message_callback_t, "Trigger", cbfunc);
    FIELD(mca_btl_active_message_callback_t, "Trigger", cbdata);
    SIZE(opal_process_name_t, "ProcessName");
    FIELD(opal_proc_t, "OpalProc", proc_name);
    FIELD(opal_proc_t, "OpalProc", proc_flags);
    SIZE(opal_proc_t, "OpalProc");
    FIELD(ompi_proc_t, "OmpiProc", proc_endpoints);
    SIZE(mca_bml_base_btl_t, "BmlBtl");
    FIELD(mca_bml_base_btl_t, "BmlBtl", btl_weight);
    FIELD(mca_bml_base_btl_t, "BmlBtl", btl);
    FIELD(mca_bml_base_btl_t, "BmlBtl", btl_endpoint);
    SIZE(mca_bml_base_btl_array_t, "BtlArray");
    FIELD(mca_bml_base_btl_array_t, "BtlArray", arr_size);
    FIELD(mca_bml_base_btl_array_t, "BtlArray", bml_btls);
    FIELD(mca_bml_base_endpoint_t, "BmlEndpoint", btl_proc);
    FIELD(mca_bml_base_endpoint_t, "BmlEndpoint", btl_eager);
    FIELD(mca_bml_base_endpoint_t, "BmlEndpoint", btl_send);
    FIELD(mca_bml_base_endpoint_t, "BmlEndpoint", btl_rdma);
    VALUE(OPAL_ERR_RESOURCE_BUSY);
    VALUE(OPAL_ERR_OUT_OF_RESOURCE);
    VALUE(MCA_BTL_DES_FLAGS_PRIORITY);
    VALUE(MCA_BTL_DES_FLAGS_BTL_OWNERSHIP);
    VALUE(MCA_BTL_DES_SEND_ALWAYS_CALLBACK);
    VALUE(MCA_BTL_DES_FLAGS_SIGNAL);
    VALUE(MCA_BTL_TAG_PML);
    VALUE(MCA_BTL_NO_ORDER);
    VALUE(MCA_BTL_TAG_MAX);
    VALUE(OMPI_PROC_ENDPOINT_TAG_BML);
    VALUE(OMPI_PROC_ENDPOINT_TAG_MAX);
    VALUE(OPAL_PROC_ON_HOST);
    VALUE(MCA_BASE_VAR_TYPE_INT);
    VALUE(MCA_BASE_VAR_TYPE_STRING);
    VALUE(OPAL_INFO_LVL_3);
    VALUE(MCA_BASE_VAR_SCOPE_READONLY);
    return 0;
}
