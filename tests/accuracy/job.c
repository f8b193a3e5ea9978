#include "job.h"

#include "../device.h"
#include "../prelude/support.h"

bool job_run(const struct job *job, smelt_array **outputs) {
    smelt_kernel_desc desc = {.name = "accuracy", .source = job->body, .math = job->math};
    smelt_run_desc run = {.grid = {job->threads}, .threadgroup = {256}, .device = job->device};
    smelt_kernel *kernel = NULL;
    for (int i = 0; i < job->input_count; i++) desc.inputs[i] = job->inputs[i].name;
    for (int i = 0; i < job->output_count; i++) {
        desc.outputs[i] = job->outputs[i].name;
        run.output_dtypes[i] = job->outputs[i].dtype;
        run.output_shapes[i] = (smelt_shape){1, {job->outputs[i].count}};
    }
    smelt_status status = smelt_kernel_create(&desc, &kernel);
    int made = 0;
    for (; status == SMELT_OK && made < job->input_count; made++)
        status = smelt_array_from_values(job->inputs[made].dtype, (smelt_shape){1, {job->inputs[made].count}},
                                         job->inputs[made].data, &run.inputs[made]);
    if (status == SMELT_OK) status = smelt_kernel_run(kernel, &run, outputs);
    for (int i = 0; status == SMELT_OK && i < job->output_count; i++) status = test_to_host(&outputs[i]);
    if (status != SMELT_OK) failed("run on %s: %s", job->device, smelt_error());
    while (made) smelt_array_release(run.inputs[--made]);
    smelt_kernel_release(kernel);
    return status == SMELT_OK;
}
